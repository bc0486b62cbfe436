package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// run runs a command line in this process, as main does.
func run(t *testing.T, line string) (code int, stdout, stderr string) {
	t.Helper()
	home := t.TempDir()
	var out, messages bytes.Buffer
	env := Environment{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &messages, Getenv: func(key string) string {
		if key == "HOME" {
			return home
		}
		return ""
	}}
	file := filepath.Join(home, "file")
	writeFile(t, file, "no program")
	line = strings.NewReplacer("TMP", filepath.Join(home, "tmp"), "FILE", file).Replace(line)
	code = Main(append([]string{"taskctl"}, strings.Fields(line)...), env)
	return code, out.String(), messages.String()
}

func TestWrongUsageIsOneLineAndCode2(t *testing.T) {
	for line, want := range map[string]string{
		"bogus":                        `there is no command "bogus"`,
		"up extra":                     `up takes no arguments, it got "extra"`,
		"up --bogus":                   "there is no flag --bogus; see: taskctl up --help",
		"up --port x":                  `invalid value "x" for flag --port; see`,
		"up --port 70000":              "the port 70000 does not exist",
		"up --wait 0s":                 "--wait must be longer than 0",
		"up --cluster docker":          `the driver "docker" is not known`,
		"up --storage oracle://u:p@h":  `the storage "oracle" is not known`,
		"up --without storage":         `the component "storage" can't be left out`,
		"up -f /nothing.yaml":          "/nothing.yaml: no such file",
		"status -o yaml":               `the output format "yaml" is not known`,
		"status --name NoName":         `the name "NoName" is not valid`,
		"logs a b":                     "logs takes one component",
		"logs --since -1s":             "--since must not be negative",
		"demo --tasks 0":               "at least 1",
		"ci":                           "ci needs a command",
		"completion tcsh":              "bash, zsh or fish",
		"storage bogus":                "there is no command \"storage bogus\"",
		"storage serve --storage etcd": "etcd is an etcd already",
		"storage serve extra":          `serve takes no arguments`,
		"-o":                           "flag needs an argument: -o",
	} {
		t.Run(line, func(t *testing.T) {
			code, stdout, stderr := run(t, line)
			if code != codeUsage || stdout != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("code %d, stdout %q, stderr %q; want %q", code, stdout, stderr, want)
			}
		})
	}
}

func TestCommandsOnNothing(t *testing.T) {
	for line, want := range map[string]struct {
		code   int
		stderr string
	}{
		"status":               {codeNotRunning, "start it with: taskctl up"},
		"status --name x":      {codeNotRunning, "start it with: taskctl up --name x"},
		"down":                 {codeOK, "taskctl was not running"},
		"down --purge":         {codeOK, "taskctl was not running"},
		"logs":                 {codeNotRunning, "is not running: start it with taskctl up"},
		"logs --export TMP":    {codeNotRunning, "is not running"},
		"kubeconfig":           {codeNotRunning, "is not running"},
		"demo":                 {codeNotRunning, "is not running"},
		"kubectl get pods":     {codeNotRunning, "is not running"},
		"list":                 {codeOK, "there are no appliances"},
		"ci nosuchcommand":     {codeNotFound, `there is no command "nosuchcommand"`},
		"ci ./no/such/command": {codeNotFound, "there is no command"},
		"ci FILE":              {codeCannotRun, "can't be executed"},
		"ci /etc":              {codeCannotRun, "can't be executed"},
	} {
		t.Run(line, func(t *testing.T) {
			code, _, stderr := run(t, line)
			if code != want.code || !strings.Contains(stderr, want.stderr) {
				t.Errorf("code %d, stderr %q; want %d, %q", code, stderr, want.code, want.stderr)
			}
		})
	}
}

func TestQuietMeansNoMessages(t *testing.T) {
	for _, line := range []string{"down -q", "-q list", "status -q"} {
		if _, _, stderr := run(t, line); stderr != "" {
			t.Errorf("%s: %q", line, stderr)
		}
	}
}

func TestJSONOutputIsOneObject(t *testing.T) {
	for _, line := range []string{"status", "list", "down", "version", "doctor"} {
		t.Run(line, func(t *testing.T) {
			_, stdout, _ := run(t, line+" -o json")
			var object map[string]any
			if err := json.Unmarshal([]byte(stdout), &object); err != nil || len(object) == 0 || strings.Count(stdout, "\n") != 1 {
				t.Errorf("%v: %q", err, stdout)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	for _, line := range []string{"", "--help", "up --help", "ci --help"} {
		code, stdout, stderr := run(t, line)
		if code != codeOK || !strings.Contains(stdout, "taskctl") || stderr != "" {
			t.Errorf("%q: code %d, stderr %q", line, code, stderr)
		}
	}
}

func TestConfigFileThatAsksForTooMuch(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"mount": {"cluster: {kind: {extraMounts: [{hostPath: /a, containerPath: /taskctl/run}]}}", "t.yaml:3: cluster.kind.extraMounts[0]"},
		"etcd":  {"cluster:\n  kind:\n    kubeadmConfigPatches:\n    - \"kind: ClusterConfiguration\\netcd: {local: {}}\"", "t.yaml:6: cluster.kind.kubeadmConfigPatches[0]: the patch sets etcd"},
		"two":   {"storage:\n  default: a\n  backends:\n  - {name: a, endpoint: \"etcd://\"}\n  - {name: b, endpoint: \"etcd://\"}", "t.yaml:7: storage.backends[1]"},
		"owned": {"cluster: {apiServerArgs: {etcd-servers: x}}", "t.yaml:3: cluster.apiServerArgs"},
		"typo":  {"clutser: {}", "t.yaml:3: clutser: there is no such field"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "t.yaml")
			writeFile(t, file, "apiVersion: taskctl.example.com/v1alpha1\nkind: Appliance\n"+test.content+"\n")
			code, _, stderr := run(t, "up -f "+file)
			if code != codeUsage || !strings.Contains(stderr, test.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("code %d, stderr %q; want %q", code, stderr, test.want)
			}
		})
	}
}
