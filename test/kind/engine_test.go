package kind

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// limit is how long a wait for a condition, or one command, may take. On a
// machine of two cores that is busy otherwise a node takes a minute.
const limit = 5 * time.Minute

// needEngine ends a test for which there is no engine or no node image.
func needEngine(t *testing.T) {
	t.Helper()
	missing := func(what string) {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s, and CI=true", what)
		}
		t.Skip(what)
	}
	if _, err := exec.LookPath("docker"); err != nil {
		missing("Docker is missing")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if output, err := exec.CommandContext(ctx, "docker", "info").CombinedOutput(); err != nil {
		missing("Docker does not answer: " + lastLine(string(output)))
	}
	if nodeImage(t) == "" {
		missing("Docker has no image kindest/node")
	}
}

// nodeImage is one that the engine has, "" if none.
func nodeImage(t *testing.T) string {
	t.Helper()
	if image := os.Getenv("TASKCTL_KIND_IMAGE"); image != "" {
		return image
	}
	images := lines(docker(t, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "kindest/node"))
	if len(images) == 0 {
		return ""
	}
	return images[0]
}

// docker runs a command of the engine, which must succeed.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	output, err := tryDocker(args...)
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return output
}

func tryDocker(args ...string) (string, error) {
	output, err := exec.Command("docker", args...).CombinedOutput()
	return string(output), err
}

// inventory is what the engine keeps: containers, networks and volumes that
// belong to nobody else who works on this machine meanwhile.
func inventory(t *testing.T) []string {
	t.Helper()
	var all []string
	for what, args := range map[string][]string{
		"container": {"ps", "--all", "--format", "{{.Names}}"},
		"network":   {"network", "ls", "--format", "{{.Name}}"},
		"volume":    {"volume", "ls", "--quiet"},
	} {
		for _, line := range lines(docker(t, args...)) {
			all = append(all, what+" "+line)
		}
	}
	slices.Sort(all)
	return all
}

// leavesNothing compares the engine's inventory at the end of the test with
// that of now. Call it first.
func leavesNothing(t *testing.T) {
	t.Helper()
	before := inventory(t)
	t.Cleanup(func() {
		after := inventory(t)
		for _, thing := range after {
			if !slices.Contains(before, thing) {
				t.Errorf("the engine has one more %s", thing)
			}
		}
	})
}

// testImage makes an image for the tests' Pods, which no registry has.
func testImage(t *testing.T, name string) {
	t.Helper()
	root := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(root, "waits"), "./testdata/waits")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	archive := exec.Command("tar", "-C", root, "-c", "waits")
	content, err := archive.Output()
	if err != nil {
		t.Fatal(err)
	}
	load := exec.Command("docker", "import", "--change", `ENTRYPOINT ["/waits"]`, "-", name)
	load.Stdin = bytes.NewReader(content)
	if output, err := load.CombinedOutput(); err != nil {
		t.Fatalf("docker import: %v\n%s", err, output)
	}
	t.Cleanup(func() { docker(t, "image", "rm", "--force", name) })
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); !condition(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain: %s", limit, what)
		}
	}
}

func lines(text string) []string {
	return strings.FieldsFunc(strings.TrimSpace(text), func(r rune) bool { return r == '\n' })
}

func lastLine(text string) string {
	all := lines(text)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in\n%s", part, text)
		}
	}
}

func nodeOf(name string) string { return fmt.Sprintf("taskctl-%s-control-plane", name) }
