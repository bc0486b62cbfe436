package kind

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/kind/pkg/apis/config/defaults"
)

// imageRepository is where kind publishes its node images.
const imageRepository = "kindest/node"

// ChooseImage is the node image to use: the given one; else one of this
// program's Kubernetes version that the engine has; else kind's own default.
// version is like v1.37.2. present says whether the engine has it.
func (e *Engine) ChooseImage(ctx context.Context, given, version string) (image string, present bool, err error) {
	if given != "" {
		return given, e.hasImage(ctx, given), nil
	}
	if e.hasImage(ctx, defaults.Image) {
		return defaults.Image, true, nil
	}
	there, err := e.nodeImages(ctx)
	if err != nil {
		return "", false, err
	}
	for _, image := range there {
		// A tag, not a digest: an image that was loaded has none.
		tag := strings.TrimPrefix(image, imageRepository+":")
		if tag == version || strings.HasPrefix(tag, version+"-") {
			return image, true, nil
		}
	}
	return defaults.Image, false, nil
}

func (e *Engine) hasImage(ctx context.Context, image string) bool {
	_, err := e.run(ctx, "image", "inspect", "--format", "{{.Id}}", image)
	return err == nil
}

// nodeImages are the node images that the engine has, by name and tag.
func (e *Engine) nodeImages(ctx context.Context) ([]string, error) {
	text, err := e.run(ctx, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}")
	if err != nil {
		return nil, fmt.Errorf("listing the images of %s: %w", e.Name, err)
	}
	var found []string
	for line := range strings.Lines(text) {
		name := strings.TrimPrefix(strings.TrimSpace(line), "docker.io/")
		if strings.HasPrefix(name, imageRepository+":") && !strings.HasSuffix(name, "<none>") {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found, nil
}

// Pull fetches an image; progress is told each line of the engine's own.
func (e *Engine) Pull(ctx context.Context, image string, progress func(string)) error {
	reader, writer := io.Pipe()
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			progress("pulling " + image + ": " + lines.Text())
		}
		_, _ = io.Copy(io.Discard, reader) // a line that is too long must not stop the command
	})
	err := e.stream(ctx, nil, writer, "pull", image)
	writer.Close()
	reading.Wait()
	if err == nil || ctx.Err() != nil {
		return err
	}
	instead := "load it with `" + e.Name + " load -i FILE`"
	if there, listErr := e.nodeImages(ctx); listErr == nil && len(there) > 0 {
		instead += ", use one that is there (--kind-image " + strings.Join(there, " or ") + ")"
	}
	return fmt.Errorf("the node image %s is not there and can't be pulled (%w): %s, or use --cluster embedded", image, err, instead)
}
