package kind

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// nodeFacts are what a throw-away container of the node image tells about
// containers of this engine.
type nodeFacts struct {
	version   string // of Kubernetes in the image
	cgroupV1  bool
	resources bool // a container may have CAP_SYS_RESOURCE
	periods   bool // kubeadm knows certificateValidityPeriod (v1beta4)
}

// probeLimit is how long a throw-away container may take. A cold one takes a
// second.
const probeLimit = 30 * time.Second

// probeScript asks for our socket through a mount, and whether a score may be
// lowered, which needs CAP_SYS_RESOURCE.
const probeScript = `echo "version=$(cat /kind/version)"
if (echo -1 >/proc/self/oom_score_adj) 2>/dev/null; then echo resources=yes; fi
echo "socket=$(curl --silent --show-error --max-time 5 --unix-socket ` + socketMount + `/probe.sock http://probe/ 2>&1)"`

// probe runs a throw-away container with the folder mounted as the node will
// have it, and checks that a program in it reaches a socket of this process.
// That fails for engines on other machines, in virtual machines, and beside a
// container that this process runs in.
func (e *Engine) probe(ctx context.Context, image, socketDir string) (nodeFacts, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, probeLimit, fmt.Errorf("not within %s", probeLimit))
	defer cancel()
	word := rand.Text()
	path := filepath.Join(socketDir, "probe.sock")
	_ = os.Remove(path) // of one that was killed
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nodeFacts{}, fmt.Errorf("opening a socket to try the engine with: %w", err)
	}
	server := &http.Server{
		ReadHeaderTimeout: askLimit,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, word) }),
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	defer serving.Wait()
	defer server.Close()

	name := "taskctl-probe-" + strings.ToLower(word[:10])
	// A killed client leaves its container running.
	defer e.removeProbe(context.WithoutCancel(ctx), name)
	words := []string{"run", "--rm", "--name", name, "--privileged", "--network", "none", "--pull", "never"}
	if e.Name == "docker" {
		words = append(words, "--userns", "host") // as kind does where the engine remaps users
	}
	text, err := e.run(ctx, append(words, "--volume", socketDir+":"+socketMount+":ro", "--entrypoint", "/bin/sh", image, "-c", probeScript)...)
	if err != nil {
		return nodeFacts{}, fmt.Errorf("a container of %s does not run on %s: %w", image, e.Name, err)
	}
	facts := nodeFacts{cgroupV1: e.CgroupV1}
	seen := ""
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "version":
			facts.version = value
		case "resources":
			facts.resources = true
		case "socket":
			seen = value
		}
	}
	if seen != word {
		return facts, &Problem{
			Reason: fmt.Sprintf("a container of %s does not reach a socket of this process (%s)", e.Name, seen),
			Advice: fmt.Sprintf("the engine runs on another machine, in a virtual machine (it says: %s), or beside the container that taskctl runs in; use an engine of this machine, or --cluster embedded", e.System),
		}
	}
	facts.periods = hasPeriods(facts.version)
	return facts, nil
}

func (e *Engine) removeProbe(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	_, _ = e.run(ctx, "rm", "--force", name) // normally it is gone already
}

// hasPeriods is true where kind gives kubeadm a configuration of v1beta4:
// Kubernetes 1.36 and newer.
func hasPeriods(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "v%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 1 || minor >= 36
}
