package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMakeUp walks a newcomer's first way. GO=true leaves out the compiler:
// the binary is there.
func TestMakeUp(t *testing.T) {
	s := newShell(t)
	run := func(target string) string {
		command := exec.Command("make", "--no-print-directory", target, "GO=true", "BIN="+s.binary)
		command.Env, command.Dir = s.env, filepath.Join("..", "..")
		result := s.runCommand(command)
		if result.Code != 0 {
			t.Fatalf("make %s: code %d\n%s%s", target, result.Code, result.Stdout, result.Stderr)
		}
		return result.Stdout + result.Stderr
	}
	said := run("up")
	for _, text := range []string{
		"is ready after", "NAME             PRIORITY   DEADLINE", "task-sample-10   10", "TaskCreated", "TaskFinished",
		"10 Tasks in namespace default", "get combinedtasks -w", "make down",
	} {
		if !strings.Contains(said, text) {
			t.Errorf("make up does not say %q:\n%s", text, said)
		}
	}
	// A second one finds everything there.
	if said := run("up"); !strings.Contains(said, "is running already") || !strings.Contains(said, "task-sample-10") {
		t.Errorf("a second make up says:\n%s", said)
	}
	if said := run("down"); !strings.Contains(said, "stopped taskctl after") {
		t.Errorf("make down says:\n%s", said)
	}
	if status := s.status(); status.code != 3 {
		t.Errorf("status %+v", status)
	}
}
