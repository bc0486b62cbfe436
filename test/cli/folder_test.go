package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFolderThatCannotBeWritten(t *testing.T) {
	s := newShell(t)
	folder := filepath.Join(s.home, "locked")
	if err := os.Mkdir(folder, 0o555); err != nil {
		t.Fatal(err)
	}
	command := s.command("up", "-d", "--data-dir", filepath.Join(folder, "data"))
	asOrdinaryUser(t, s, command, folder)
	result := s.runCommand(command)
	if result.Code != 1 {
		t.Errorf("code %d", result.Code)
	}
	checkError(t, result, folder, "you may not write there", "--data-dir")
}

// asOrdinaryUser runs the command without root's right to write everywhere.
func asOrdinaryUser(t *testing.T, s *shell, command *exec.Cmd, folder string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	for _, path := range []string{s.home, folder} {
		if err := os.Chown(path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	// The folders above are the test's own, of mode 0700; the binary may lie
	// where only root looks.
	for path := s.home; path != os.TempDir() && path != "/"; path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(s.home, "taskctl")
	content, err := os.ReadFile(s.binary)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, content, 0o755); err != nil {
		t.Fatal(err)
	}
	command.Path = program
}

func TestFolderOfAnotherUser(t *testing.T) {
	s := newShell(t)
	folder := "/usr" // root's
	if os.Geteuid() == 0 {
		folder = filepath.Join(s.home, "theirs")
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(folder, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	s.fails(1, []string{"up", "--data-dir", folder}, folder, "belongs to another user", "--data-dir")
}

func TestFolderWithOtherFiles(t *testing.T) {
	s := newShell(t)
	s.fails(1, []string{"up", "--data-dir", s.home}, s.home, "other files")
	s.must(0, "down", "--purge", "--data-dir", s.home)
	if _, err := os.Stat(s.home); err != nil {
		t.Errorf("--purge deleted a folder that is not ours: %v", err)
	}
}

func TestFolderOfANewerVersion(t *testing.T) {
	s := newShell(t)
	if err := os.MkdirAll(s.state("taskctl"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.state("taskctl"), "state.json")
	if err := os.WriteFile(file, []byte(`{"version": 1000, "program": "v99.0.0"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"up", "down", "status"} {
		s.fails(1, []string{command}, "made by a newer taskctl (v99.0.0", "--data-dir")
	}
	if got := readFile(t, file); !strings.Contains(got, "v99.0.0") {
		t.Errorf("state.json was changed: %s", got)
	}
}

func TestFolderDeletedUnderWay(t *testing.T) {
	s := newShell(t)
	up := s.start("up")
	up.await("Press ^C to stop")
	deleteUnderWay(t, s.state("taskctl"))
	if code := up.wait(limit); code != 1 {
		t.Errorf("code %d: %s", code, up.stderr)
	}
	if !strings.Contains(up.stderr.String(), "error: the data folder "+s.state("taskctl")+" was deleted") {
		t.Errorf("stderr %s", up.stderr)
	}
	if strings.Contains(up.stderr.String(), "goroutine ") {
		t.Errorf("a stack was shown: %s", up.stderr)
	}
}

// deleteUnderWay deletes a folder in which somebody may write at this moment.
func deleteUnderWay(t *testing.T, folder string) {
	t.Helper()
	if err := os.RemoveAll(folder); err != nil {
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFolderThatWasCopied(t *testing.T) {
	s := newShell(t)
	args := append([]string{"up", "-d", "-q"}, bare...)
	s.must(0, args...)
	s.kubectl("create", "configmap", "copied")
	s.must(0, "down")
	copied := filepath.Join(s.home, "copy")
	if err := os.CopyFS(copied, os.DirFS(s.state("taskctl"))); err != nil {
		t.Fatal(err)
	}
	s.must(0, args...)
	s.must(0, append(args, "--data-dir", copied, "--name", "copy")...)
	original, copy := s.status(), s.status("--data-dir", copied, "--name", "copy")
	if original.Server == copy.Server || copy.code != 0 {
		t.Errorf("%+v\n%+v", original, copy)
	}
	for _, where := range [][]string{{}, {"--data-dir", copied}} {
		if out := s.must(0, append(where, "kubectl", "get", "configmaps", "-o", "name")...).Stdout; !strings.Contains(out, "copied") {
			t.Errorf("%v: %q", where, out)
		}
	}
	s.must(0, "down", "--data-dir", copied, "--name", "copy")
	s.must(0, "down")
}

func TestDeepFolder(t *testing.T) {
	s := newShell(t)
	deep := filepath.Join(s.home, strings.Repeat("d", 70), strings.Repeat("e", 70), "data")
	up := s.start(append([]string{"up", "--ephemeral", "--data-dir", deep}, bare...)...)
	up.await("Press ^C to stop")
	up.await("\n  taskctl demo --data-dir " + deep + "\n")
	if status := s.status("--data-dir", deep); status.code != 0 {
		t.Errorf("status %+v", status)
	}
	s.must(0, "down", "--data-dir", deep)
	if code := up.wait(limit); code != 0 {
		t.Errorf("code %d: %s", code, up.stderr)
	}
	if left := tree(t, s.home); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func TestHomeUnset(t *testing.T) {
	s := newShell(t)
	// HOME stays in the environment under another name, by which the test
	// finds processes that are left behind.
	withoutHome := func(args ...string) *exec.Cmd {
		command := s.command(args...)
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + s.home, "XDG_STATE_HOME=" + filepath.Join(s.home, "state"), "TASKCTL_CLUSTER=embedded"}
		return command
	}
	result := s.runCommand(withoutHome("up", "-d"))
	if result.Code != 1 {
		t.Errorf("code %d", result.Code)
	}
	checkError(t, result, "neither KUBECONFIG nor HOME is set", "--kubeconfig")
	result = s.runCommand(withoutHome(append([]string{"up", "-d", "--kubeconfig", filepath.Join(s.home, "config")}, bare...)...))
	if result.Code != 0 {
		t.Fatalf("code %d: %s", result.Code, result.Stderr)
	}
	if result := s.runCommand(withoutHome("kubectl", "get", "namespaces")); result.Code != 0 {
		t.Errorf("kubectl: code %d: %s", result.Code, result.Stderr)
	}
	if result := s.runCommand(withoutHome("down", "--purge")); result.Code != 0 {
		t.Errorf("down: code %d: %s", result.Code, result.Stderr)
	}
}

func TestBrokenKubeconfigIsSaidBeforeAnythingStarts(t *testing.T) {
	s := newShell(t)
	if err := os.WriteFile(s.kubeconfig(), []byte("contexts: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	s.fails(1, []string{"up"}, s.kubeconfig(), "--kubeconfig")
	if _, err := os.Stat(s.state("taskctl")); !os.IsNotExist(err) {
		t.Errorf("a data folder was made: %v", err)
	}
}

func TestFailureNamesTheComponentAndItsLog(t *testing.T) {
	s := newShell(t)
	config := filepath.Join(s.home, "taskctl.yaml")
	content := "apiVersion: taskctl.example.com/v1alpha1\nkind: Appliance\ncluster:\n  apiServerArgs: {oidc-issuer-url: \"https://127.0.0.1:1\", oidc-client-id: a, oidc-ca-file: /no/such/file}\n"
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(s.state("taskctl"), "logs", "apiserver.log")
	for _, args := range [][]string{{"up", "-d", "-f", config}, {"up", "-f", config}} {
		result := s.must(1, args...)
		checkError(t, result, "apiserver failed: ", "/no/such/file", log)
		if !strings.Contains(result.Stderr, "the last lines of the log of apiserver:\n  20") {
			t.Errorf("%v: no log lines: %s", args, result.Stderr)
		}
	}
	result := s.must(1, "up", "-d", "-o", "json", "-f", config)
	lines := strings.Split(strings.TrimSpace(result.Stdout), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, `"event":"failed"`) || !strings.Contains(last, `"component":"apiserver"`) {
		t.Errorf("the last event is %s", last)
	}
	if status := s.status(); status.code != 3 {
		t.Errorf("status %+v", status)
	}
}

func TestDamagedDatabase(t *testing.T) {
	s := newShell(t)
	args := append([]string{"up", "-d", "-q"}, bare...)
	s.must(0, args...)
	s.must(0, "down")
	database := filepath.Join(s.state("taskctl"), "etcd", "member", "snap", "db")
	if err := os.WriteFile(database, []byte(strings.Repeat("garbage", 10000)), 0o600); err != nil {
		t.Fatal(err)
	}
	result := s.must(1, args...)
	checkError(t, result, "storage failed", filepath.Join(s.state("taskctl"), "logs", "storage.log"))
}
