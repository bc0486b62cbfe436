package kind

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taskctl-dev/taskctl/test/harness"
)

// TestLife is the life of one appliance, from nothing to nothing: each step
// builds on the one before.
func TestLife(t *testing.T) {
	u := newUser(t)
	leavesNothing(t)
	testImage(t, appImage)
	t.Run("it starts from nothing", func(t *testing.T) {
		u := u.in(t)
		up := u.run("up", "-d", "--storage", "etcd")
		if up.Code != 0 {
			t.Fatalf("code %d: %s", up.Code, up.Stderr)
		}
		if strings.Contains(up.Stderr, "There are no nodes") {
			t.Errorf("it says that there are no nodes: %s", up.Stderr)
		}
		contains(t, u.kubectl("get", "nodes"), u.node(), "Ready")
		if policy := docker(t, "container", "inspect", "--format", "{{.HostConfig.RestartPolicy.Name}}", u.node()); strings.TrimSpace(policy) != "no" {
			t.Errorf("the engine would start the node by itself: %s", policy)
		}
	})
	t.Run("the operator's script works", func(t *testing.T) { kubectlScript(u.in(t)) })
	t.Run("the aggregated API answers", func(t *testing.T) { aggregated(u.in(t)) })
	t.Run("an image is loaded and a Deployment runs", func(t *testing.T) { deployment(u.in(t)) })
	t.Run("logs are exported with those of the node", func(t *testing.T) {
		u, dir := u.in(t), filepath.Join(t.TempDir(), "logs")
		u.must("logs", "--export", dir)
		for _, name := range []string{"apiserver.log", filepath.Join("kind", u.node(), "kubelet.log"), filepath.Join("kind", u.node(), "journal.log")} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	u.kubectl("create", "configmap", "kept", "--from-literal=key=value")
	token := strings.TrimSpace(u.kubectl("create", "token", "default"))
	t.Run("it stops and starts again with everything in it", func(t *testing.T) {
		u := u.in(t)
		u.must("down")
		if u.nodeRuns() {
			t.Error("the node still runs")
		}
		before := u.address()
		takeAddress(t, before)
		u.must("up", "-d")
		everythingIsThere(u, token)
		if now := u.address(); now == "" || now == before {
			t.Errorf("the node's address was %s and is %s: this is no start at a new one", before, now)
		}
	})
	t.Run("it recovers from a kill", func(t *testing.T) {
		u := u.in(t)
		u.kill()
		if !u.nodeRuns() {
			t.Error("the node has stopped with the process: nothing to recover from")
		}
		u.must("up", "-d")
		everythingIsThere(u, token)
	})
	t.Run("a stop after a kill stops the node", func(t *testing.T) {
		u := u.in(t)
		u.kill()
		u.must("down")
		if u.nodeRuns() {
			t.Error("the node still runs")
		}
	})
	t.Run("another driver is refused", func(t *testing.T) {
		u.in(t).fails([]string{"up", "--cluster", "embedded"}, "--cluster kind", "--name", "down --purge")
	})
	t.Run("a node that is gone is made anew for the same objects", func(t *testing.T) {
		u := u.in(t)
		docker(t, "rm", "--force", "--volumes", u.node())
		u.fails([]string{"up", "-d"}, "is gone", "--recreate")
		u.must("up", "-d", "--recreate")
		u.must("kind", "load", appImage)
		everythingIsThere(u, token)
		contains(t, u.kubectl("get", "nodes", "--no-headers"), u.node(), "Ready")
	})
	t.Run("purge leaves nothing", func(t *testing.T) {
		u := u.in(t)
		u.must("down", "--purge")
		if _, err := os.Stat(filepath.Dir(u.dataDir())); !os.IsNotExist(err) {
			t.Errorf("the data folder: %v", err)
		}
		if content, err := os.ReadFile(filepath.Join(u.home, "kubeconfig")); err == nil && strings.Contains(string(content), u.name) {
			t.Errorf("the kubeconfig still has the context:\n%s", content)
		}
	})
}

// everythingIsThere looks for what the steps before have made, and asks for all
// that this process answers.
func everythingIsThere(u *user, token string) {
	u.t.Helper()
	contains(u.t, u.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.key}"), "value")
	contains(u.t, u.kubectl("get", "tasks"), "task-sample-1")
	contains(u.t, u.kubectl("get", "combinedtasks"), "task-sample-1")
	contains(u.t, u.kubectl("auth", "whoami", "--token", token, "--kubeconfig", withoutUser(u)), "system:serviceaccount:default:default")
	u.kubectl("run", "check", "--image", appImage, "--image-pull-policy=Never", "--restart=Never")
	u.kubectl("wait", "--for=condition=Ready", "pod/check", "--timeout=3m")
	u.kubectl("delete", "pod", "check", "--grace-period=1")
}

// withoutUser is a kubeconfig that has the cluster and no credentials.
func withoutUser(u *user) string {
	u.t.Helper()
	file := filepath.Join(u.t.TempDir(), "kubeconfig")
	content := u.kubectl("config", "view", "--raw", "--minify", "--flatten")
	var kept []string
	for _, line := range lines(content) {
		if !strings.Contains(line, "client-certificate-data") && !strings.Contains(line, "client-key-data") {
			kept = append(kept, line)
		}
	}
	if err := os.WriteFile(file, []byte(strings.Join(kept, "\n")+"\n"), 0o600); err != nil {
		u.t.Fatal(err)
	}
	return file
}

// TestASignalWhileANodeIsMade cuts the making short.
func TestASignalWhileANodeIsMade(t *testing.T) {
	u := newUser(t)
	leavesNothing(t)
	up := u.command("up")
	done := make(chan harness.Result, 1)
	go func() { done <- harness.Run(t, up) }()
	eventually(t, "the container is there", func() bool {
		_, err := tryDocker("container", "inspect", u.node())
		return err == nil
	})
	if err := up.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if result := <-done; result.Code != 130 {
		t.Errorf("code %d: %s", result.Code, result.Stderr)
	}
	if output, err := tryDocker("container", "inspect", u.node()); err == nil {
		t.Errorf("the container is left: %s", output)
	}
}

// TestAForeignCluster has the name that the appliance's would have.
func TestAForeignCluster(t *testing.T) {
	u := newUser(t)
	docker(t, "run", "--detach", "--name", u.node(), "--label", "io.x-k8s.kind.cluster=taskctl-"+u.name, "--entrypoint", "sleep", nodeImage(t), "600")
	u.fails([]string{"up"}, "not this appliance's", "--name")
	u.must("down", "--purge")
	if !u.nodeRuns() {
		t.Error("the foreign container was stopped")
	}
}
