package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// completions are scripts that load our completion as the documentation says
// and print what the shell would offer for "$line", a word or more a line.
var completions = map[string]string{
	"bash": `source <(taskctl completion bash)
read -ra COMP_WORDS <<<"$line"; [[ $line == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _taskctl; printf '%s\n' "${COMPREPLY[@]}"`,
	"fish": `taskctl completion fish | source; complete -C "$line" | string replace -r '\t.*' ''`,
}

// TestCompletion asks the shells themselves; bash is everywhere.
func TestCompletion(t *testing.T) {
	s := newShell(t)
	programs := filepath.Join(s.home, "programs")
	if err := os.Mkdir(programs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(s.binary, filepath.Join(programs, "taskctl")); err != nil {
		t.Fatal(err)
	}
	for shell, script := range completions {
		path, err := exec.LookPath(shell)
		if err != nil && shell != "bash" {
			t.Logf("%s is not installed here", shell)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		for line, want := range map[string][]string{
			"taskctl st":             {"status", "storage"},
			"taskctl up --ephe":      {"--ephemeral"},
			"taskctl logs -f regis":  {"registration"},
			"taskctl -o ":            {"text", "json"},
			"taskctl status -o js":   {"json"},
			"taskctl completion f":   {"fish"},
			"taskctl storage ser":    {"serve"},
			"taskctl kubectl get -o": nil, // no appliance, no candidates, no noise
		} {
			t.Run(shell+": "+line, func(t *testing.T) {
				s := s.in(t)
				command := exec.Command(path, "-c", script)
				command.Env = append(s.env, "line="+line, "PATH="+programs+":"+os.Getenv("PATH"))
				command.Dir = s.home
				result := s.runCommand(command)
				if result.Code != 0 || result.Stderr != "" {
					t.Errorf("code %d, stderr %q", result.Code, result.Stderr)
				}
				offered := strings.Fields(result.Stdout)
				for _, word := range want {
					if !slices.Contains(offered, word) {
						t.Errorf("%q is not offered: %q", word, offered)
					}
				}
			})
		}
	}
}
