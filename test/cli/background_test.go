package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// usersKubeconfig is what a user had before.
const usersKubeconfig = `apiVersion: v1
kind: Config
current-context: work
x-unknown: kept
clusters:
- name: work
  cluster: {server: "https://work.example.com"}
contexts:
- name: work
  context: {cluster: work, user: me}
users:
- name: me
  user: {token: t}
`

func TestLifeInTheBackground(t *testing.T) {
	s := newShell(t)
	if err := os.WriteFile(s.kubeconfig(), []byte(usersKubeconfig), 0o644); err != nil {
		t.Fatal(err)
	}

	up := s.must(0, "up", "-d")
	if up.Stdout != "" {
		t.Errorf("messages on stdout: %q", up.Stdout)
	}
	for _, text := range []string{"is ready after", "API server", "Context     taskctl", "Pods stay Pending", "taskctl down"} {
		if !strings.Contains(up.Stderr, text) {
			t.Errorf("up does not say %q: %s", text, up.Stderr)
		}
	}

	first := s.status()
	if first.code != 0 || first.State != "ready" || first.Memory.ResidentBytes == 0 || len(first.Components) != 10 {
		t.Fatalf("status %+v", first)
	}
	for _, component := range first.Components {
		if component.State != "ready" || component.Since.IsZero() || component.Restarts != 0 || !strings.HasPrefix(component.LogFile, s.state("taskctl")) {
			t.Errorf("component %+v", component)
		}
	}
	if session, _, errno := syscall.Syscall(syscall.SYS_GETSID, uintptr(first.PID), 0, 0); errno != 0 || int(session) != first.PID {
		t.Errorf("process %d is in the session %d, not in one of its own (%v)", first.PID, session, errno)
	}

	t.Run("kubeconfig is merged", func(t *testing.T) {
		s := s.in(t)
		merged := readFile(t, s.kubeconfig())
		for _, text := range []string{"current-context: taskctl", "x-unknown: kept", "name: work", first.Server} {
			if !strings.Contains(merged, text) {
				t.Errorf("the kubeconfig does not say %q:\n%s", text, merged)
			}
		}
		if info, err := os.Stat(s.kubeconfig()); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	})

	t.Run("second up with the same settings is success", func(t *testing.T) {
		s := s.in(t)
		began := time.Now()
		result := s.must(0, "up")
		if !strings.Contains(result.Stderr, "is running already (process "+strconv.Itoa(first.PID)+")") {
			t.Errorf("stderr %q", result.Stderr)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("it took %s", took)
		}
		s.must(0, "up", "-d", "--port", first.port(t))
	})

	t.Run("second up with other settings names the difference", func(t *testing.T) {
		s := s.in(t)
		s.fails(1, []string{"up", "-d", "--without", "operator"}, `without is "", asked for is "operator"`, "taskctl down", strconv.Itoa(first.PID))
		s.fails(1, []string{"up", "--port", "1234"}, `port is "`+first.port(t)+`", asked for is "1234"`)
	})

	t.Run("up as JSON ends with ready", func(t *testing.T) {
		s := s.in(t)
		lines := strings.Split(strings.TrimSpace(s.must(0, "up", "-d", "-o", "json").Stdout), "\n")
		var event map[string]any
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &event); err != nil {
			t.Fatal(err)
		}
		if event["event"] != "ready" || event["server"] != first.Server || event["pid"] != float64(first.PID) || event["dataDir"] != s.state("taskctl") {
			t.Errorf("event %v", event)
		}
	})

	t.Run("flags before and after arguments", func(t *testing.T) {
		s := s.in(t)
		for _, args := range [][]string{
			{"--name", "taskctl", "logs", "supervisor", "--since", "1h"}, {"logs", "--since=1h", "supervisor", "--name=taskctl"},
		} {
			if result := s.must(0, args...); !strings.Contains(result.Stdout, "name=registration state=ready") {
				t.Errorf("%v: %q", args, result.Stdout)
			}
		}
	})

	t.Run("logs", func(t *testing.T) { checkLogs(t, s.in(t)) })
	t.Run("kubectl", func(t *testing.T) { checkKubectl(t, s.in(t)) })

	t.Run("list", func(t *testing.T) {
		s := s.in(t)
		if result := s.must(0, "list"); !strings.Contains(result.Stdout, "taskctl") || !strings.Contains(result.Stdout, first.Server) {
			t.Errorf("%q", result.Stdout)
		}
	})

	t.Run("kubeconfig prints it", func(t *testing.T) {
		s := s.in(t)
		if result := s.must(0, "kubeconfig"); result.Stdout != readFile(t, filepath.Join(s.state("taskctl"), "kubeconfig")) {
			t.Errorf("%q", result.Stdout)
		}
	})

	s.kubectl("create", "configmap", "kept", "--from-literal=a=b")
	follow := s.start("logs", "-f")
	follow.await("operator ")
	began := time.Now()
	s.must(0, "down")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("down took %s", took)
	}
	// It follows all, as long as there is something to follow.
	if code := follow.wait(limit); code != 0 || !strings.Contains(follow.stdout.String(), "name=registration state=stopping") {
		t.Errorf("logs -f ended with %d: %s", code, follow.stderr)
	}
	if restored := readFile(t, s.kubeconfig()); !strings.Contains(restored, "current-context: work") || strings.Contains(restored, "taskctl") {
		t.Errorf("after down the kubeconfig is\n%s", restored)
	}
	if after := s.status(); after.code != 3 || after.State != "not-running" {
		t.Errorf("status after down: %+v", after)
	}
	if result := s.must(0, "down"); !strings.Contains(result.Stderr, "was not running") {
		t.Errorf("second down: %q", result.Stderr)
	}
	if sockets := tree(t, filepath.Join(s.state("taskctl"), "run")); len(sockets) != 0 {
		t.Errorf("left: %v", sockets)
	}
	if result := s.run("logs", "supervisor"); result.Code != 3 || !strings.Contains(result.Stdout, "the appliance has stopped") {
		t.Errorf("logs when down: code %d, %q", result.Code, result.Stdout)
	}

	s.must(0, "up", "-d", "-q")
	second := s.status()
	if second.port(t) != first.port(t) {
		t.Errorf("port %s, it was %s before", second.port(t), first.port(t))
	}
	if second.RunID == first.RunID {
		t.Error("two runs have one id")
	}
	if got := s.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.a}"); got != "b" {
		t.Errorf("the data is %q", got)
	}
	result := s.must(0, "down", "--purge")
	if _, err := os.Stat(s.state("taskctl")); !os.IsNotExist(err) {
		t.Errorf("after --purge (%s) the folder is there: %v", result.Stderr, err)
	}
}

func checkLogs(t *testing.T, s *shell) {
	all := s.must(0, "logs").Stdout
	for _, component := range []string{"storage ", "apiserver ", "controller-manager ", "operator ", "supervisor "} {
		if !strings.Contains(all, "\n"+component) && !strings.HasPrefix(all, component) {
			t.Errorf("no line of %q", component)
		}
	}
	times := []string{}
	for line := range strings.Lines(all) {
		_, text, _ := strings.Cut(line, " ")
		times = append(times, text[:min(24, len(text))])
	}
	if !slices.IsSorted(times) {
		t.Error("the lines are not in the order of time")
	}
	if strings.Contains(all, "PRIVATE KEY") || strings.Contains(all, "client-key-data") {
		t.Error("a key stands in the logs")
	}
	s.fails(1, []string{"logs", "nothing"}, `no log of "nothing"`, "apiserver")
	if last := s.must(0, "logs", "--since", "1ms").Stdout; strings.Count(last, "\n") > strings.Count(all, "\n")/2 {
		t.Errorf("of the last millisecond there are %d lines, of all time %d", strings.Count(last, "\n"), strings.Count(all, "\n"))
	}

	follow := s.start("logs", "-f", "operator")
	follow.await("Starting workers")
	follow.signal(syscall.SIGINT)
	if code := follow.wait(limit); code != 130 {
		t.Errorf("logs -f ended with %d after ^C", code)
	}

	directory := filepath.Join(s.home, "exported")
	s.must(0, "logs", "--export", directory)
	if _, err := os.Stat(filepath.Join(directory, "apiserver.log")); err != nil {
		t.Error(err)
	}
}

func checkKubectl(t *testing.T, s *shell) {
	if out := s.kubectl("get", "namespaces", "-o", "name"); !strings.Contains(out, "namespace/default") {
		t.Errorf("%q", out)
	}
	result := s.run("kubectl", "get", "nosuchthing")
	if result.Code != 1 || !strings.Contains(result.Stderr, `doesn't have a resource type "nosuchthing"`) {
		t.Errorf("code %d, %q", result.Code, result.Stderr)
	}
	// kubectl diff has codes of its own: 1 means that there is a difference.
	manifest := filepath.Join(s.home, "diff.yaml")
	if err := os.WriteFile(manifest, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: new}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if result := s.run("kubectl", "diff", "-f", manifest); result.Code != 1 {
		t.Errorf("diff ended with %d: %s", result.Code, result.Stderr)
	}
	if result := s.run("--name", "taskctl", "kubectl", "get", "pods", "--bogus"); result.Code != 1 || !strings.Contains(result.Stderr, "unknown flag: --bogus") {
		t.Errorf("code %d, %q", result.Code, result.Stderr)
	}

	plugins := filepath.Join(s.home, "plugins")
	if err := os.MkdirAll(plugins, 0o700); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho \"plugin got $* and $KUBECONFIG\"\nexit 42\n"
	if err := os.WriteFile(filepath.Join(plugins, "kubectl-hello"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	command := s.command("kubectl", "hello", "--name", "you", "-v")
	command.Env = append(command.Env, "PATH="+plugins+":"+os.Getenv("PATH"))
	result = s.runCommand(command)
	want := "plugin got --name you -v and " + filepath.Join(s.state("taskctl"), "kubeconfig") + "\n"
	if result.Code != 42 || result.Stdout != want {
		t.Errorf("code %d, %q, want 42, %q", result.Code, result.Stdout, want)
	}
}
