package kind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// Load brings an image into a running node without a registry. What names a
// file is an archive, as `docker save` writes it; anything else is an image of
// the engine.
func (n *Node) Load(ctx context.Context, what string) error {
	if err := n.checkRunning(ctx); err != nil {
		return err
	}
	file, err := os.Open(what)
	switch {
	case err == nil:
		defer file.Close() //nolint:errcheck // it is only read
		if info, err := file.Stat(); err != nil || info.IsDir() {
			return fmt.Errorf("%s is a folder, and no archive of an image: make one with %s save IMAGE -o FILE", what, n.Engine.Name)
		}
		return n.importArchive(ctx, file)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("reading the archive: %w", err)
	}
	if !n.Engine.hasImage(ctx, what) {
		return fmt.Errorf("there is neither a file nor an image %s: build it, pull it, or give the path of an archive", what)
	}
	return n.loadImage(ctx, what)
}

// loadImage pipes the engine's archive of an image into the node: nothing is
// written to disk on the way.
func (n *Node) loadImage(ctx context.Context, image string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	reader, writer := io.Pipe()
	var saveErr error
	var saving sync.WaitGroup
	saving.Go(func() {
		saveErr = n.Engine.stream(ctx, nil, writer, "save", image)
		writer.CloseWithError(saveErr)
	})
	err := n.importArchive(ctx, reader)
	reader.Close()
	stop() // a save that nobody reads any more
	saving.Wait()
	if saveErr != nil && err == nil {
		err = fmt.Errorf("reading the image %s: %w", image, saveErr)
	}
	return err
}

// importArchive hands an archive to containerd in the node. It imports the
// node's own platform: an engine that stores images as containerd does writes
// the index of all platforms, and the content of those that it has.
func (n *Node) importArchive(ctx context.Context, archive io.Reader) error {
	var output strings.Builder
	err := n.Engine.stream(ctx, archive, &output, "exec", "--interactive", n.Name(),
		"ctr", "--namespace=k8s.io", "images", "import", "--digests", "-")
	switch {
	case err == nil:
		return nil
	case says(err, "unrecognized image format", "unexpected eof", "invalid tar header"):
		return fmt.Errorf("this is no archive of an image (%w): make one with %s save IMAGE -o FILE", err, n.Engine.Name)
	case says(err, "no match for platform", "not found"):
		return fmt.Errorf("the image is not for the node's platform (%w): build it for that one", err)
	case says(err, "no space left"):
		return fmt.Errorf("the node's disk is full (%w): make room on the disk of %s", err, n.Engine.Name)
	}
	return fmt.Errorf("loading the image into the node: %w", err)
}

func (n *Node) checkRunning(ctx context.Context) error {
	state, err := n.inspect(ctx)
	if err == nil {
		err = n.check(state)
	}
	if err == nil && !state.running {
		err = fmt.Errorf("the node %s is not running", n.Name())
	}
	return err
}
