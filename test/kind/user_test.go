package kind

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/test/harness"
)

// user is somebody with a home folder and one appliance, which goes with the
// test.
type user struct {
	t      *testing.T
	binary string
	home   string
	name   string
	env    []string
}

func newUser(t *testing.T) *user {
	t.Helper()
	needEngine(t)
	u := &user{t: t, binary: harness.Binary(t), home: t.TempDir(), name: "t" + strings.ToLower(rand.Text()[:8])}
	u.env = append(os.Environ(),
		"HOME="+u.home, "XDG_STATE_HOME="+filepath.Join(u.home, "state"), "KUBECONFIG="+filepath.Join(u.home, "kubeconfig"),
		"TASKCTL_NAME="+u.name, "TASKCTL_CLUSTER=kind", "TASKCTL_KIND_IMAGE="+nodeImage(t))
	t.Cleanup(func() {
		u.run("down", "--purge")
		// What a failed test has left; a test that passed looks by itself.
		_, _ = tryDocker("rm", "--force", "--volumes", u.node())
	})
	return u
}

// in is the same user in a subtest.
func (u *user) in(t *testing.T) *user {
	copied := *u
	copied.t = t
	return &copied
}

func (u *user) node() string    { return nodeOf(u.name) }
func (u *user) dataDir() string { return filepath.Join(u.home, "state", "taskctl", u.name) }

func (u *user) command(args ...string) *exec.Cmd {
	if args[0] == "up" {
		args = append([]string{"up", "--wait", limit.String()}, args[1:]...)
	}
	command := exec.Command(u.binary, args...)
	command.Env, command.Dir = u.env, u.home
	return command
}

func (u *user) run(args ...string) harness.Result {
	u.t.Helper()
	command := u.command(args...)
	timer := time.AfterFunc(limit, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	began := time.Now()
	result := harness.Run(u.t, command)
	if took := time.Since(began); took > time.Second {
		u.t.Logf("%s: %.1f s", strings.Join(args, " "), took.Seconds())
	}
	return result
}

// must runs a command that has to succeed, and returns its output.
func (u *user) must(args ...string) string {
	u.t.Helper()
	result := u.run(args...)
	if result.Code != 0 {
		u.t.Fatalf("taskctl %s: code %d\n%s%s", strings.Join(args, " "), result.Code, result.Stdout, result.Stderr)
	}
	return result.Stdout
}

// fails runs a command that has to fail with these parts in its error.
func (u *user) fails(args []string, parts ...string) {
	u.t.Helper()
	result := u.run(args...)
	if result.Code != 1 {
		u.t.Fatalf("taskctl %s: code %d\n%s%s", strings.Join(args, " "), result.Code, result.Stdout, result.Stderr)
	}
	contains(u.t, lastLine(result.Stderr), parts...)
}

func (u *user) kubectl(args ...string) string {
	u.t.Helper()
	return u.must(append([]string{"kubectl"}, args...)...)
}

// apply applies YAML.
func (u *user) apply(manifest string) {
	u.t.Helper()
	file := filepath.Join(u.t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		u.t.Fatal(err)
	}
	u.kubectl("apply", "-f", file)
}

// pid is the process of the running appliance.
func (u *user) pid() int {
	u.t.Helper()
	var status struct{ PID int }
	if err := json.Unmarshal([]byte(u.must("status", "-o", "json")), &status); err != nil {
		u.t.Fatal(err)
	}
	return status.PID
}

// kill ends the appliance's process as a crash would.
func (u *user) kill() {
	u.t.Helper()
	pid := u.pid()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		u.t.Fatal(err)
	}
	eventually(u.t, "the process is gone", func() bool { return syscall.Kill(pid, 0) != nil })
}

func (u *user) nodeRuns() bool {
	u.t.Helper()
	return strings.TrimSpace(docker(u.t, "container", "inspect", "--format", "{{.State.Running}}", u.node())) == "true"
}

// address is the node's in the engine's network; the engine forgets it when the
// node stops, and the node itself keeps a note.
func (u *user) address() string {
	u.t.Helper()
	file := filepath.Join(u.t.TempDir(), "address")
	docker(u.t, "cp", u.node()+":/kind/old-ipv4", file)
	content, err := os.ReadFile(file)
	if err != nil {
		u.t.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

// takeAddress gives an address of the nodes' network to another container,
// until the test ends.
func takeAddress(t *testing.T, address string) {
	t.Helper()
	for i := range 20 {
		name := "taskctl-test-" + strings.ToLower(rand.Text()[:8])
		docker(t, "run", "--detach", "--network", "taskctl", "--name", name, "--entrypoint", "sleep", nodeImage(t), "600")
		t.Cleanup(func() { docker(t, "rm", "--force", "--volumes", name) })
		got := strings.TrimSpace(docker(t, "container", "inspect", "--format", "{{.NetworkSettings.Networks.taskctl.IPAddress}}", name))
		if got == address {
			return
		}
		t.Logf("container %d got %s", i, got)
	}
	t.Fatalf("no container got the address %s", address)
}
