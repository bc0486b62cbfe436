package cli

import (
	"os"
	"strings"
	"testing"
)

func testProgram(t *testing.T) *program {
	t.Helper()
	env := OS()
	env.Getenv = func(string) string { return "" }
	env.Stdout, env.Stderr = &strings.Builder{}, &strings.Builder{}
	return &program{env: env}
}

func TestFlagsStandBeforeOrAfterArguments(t *testing.T) {
	for line, want := range map[string]string{
		"logs operator -f":                           "logs -f operator",
		"logs -f operator":                           "logs -f operator",
		"logs operator --since 10m -q":               "logs --since 10m -q operator",
		"logs operator --since=10m":                  "logs --since=10m operator",
		"--name x logs operator":                     "logs --name x operator",
		"-q -o json status":                          "status -q -o json",
		"status -vv":                                 "status -v -v",
		"logs operator -- -f":                        "logs operator -- -f",
		"logs -- operator -f":                        "logs -- operator -f",
		"--name x kubectl get -n y pods -o json":     "--name x kubectl get -n y pods -o json",
		"kubectl --name x":                           "kubectl --name x",
		"ci --port 7 go test -v -run X ./...":        "ci --port 7 go test -v -run X ./...",
		"ci -q -- go test -v":                        "ci -q -- go test -v",
		"--name x ci go test --name y":               "ci --name x go test --name y",
		"bogus --name x -f":                          "bogus --name x -f",
		"up --unknown value -d":                      "up --unknown -d value",
		"up --name":                                  "up --name",
		"":                                           "",
		"up --switch-context=false -d --detach=true": "up --switch-context=false -d --detach=true",
		"storage serve --listen a --listen b -q":     "storage serve --listen a --listen b -q",
		"--data-dir d storage --name x serve":        "storage serve --data-dir d --name x",
		"logs up":                                    "logs up",
	} {
		t.Run(line, func(t *testing.T) {
			got := reorder(testProgram(t).app(), append([]string{"taskctl"}, strings.Fields(line)...))
			if got := strings.Join(got[1:], " "); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestCandidates(t *testing.T) {
	for line, want := range map[string]string{
		"st":                 "status",
		"up --wi":            "--without",
		"up --cluster ":      "embedded",
		"up -o ":             "json",
		"logs ":              "storage",
		"logs -f ":           "operator",
		"completion ":        "zsh",
		"storage ":           "serve",
		"storage serve --li": "--listen",
		"--na":               "--name",
		"--name x status --": "--quiet",
	} {
		t.Run(line, func(t *testing.T) {
			p := testProgram(t)
			words := strings.Split(line, " ")
			found := false
			for _, candidate := range p.candidates(p.app(), words) {
				name, _, _ := strings.Cut(candidate, "\t")
				found = found || name == want
			}
			if !found {
				t.Errorf("%q is not among %q", want, p.candidates(p.app(), words))
			}
		})
	}
	for _, line := range []string{"ci -- ", "logs operator ", "up --file "} {
		p := testProgram(t)
		if got := p.candidates(p.app(), strings.Split(line, " ")); len(got) != 0 {
			t.Errorf("%q: %q, want none, which means files", line, got)
		}
	}
}

func TestDifferences(t *testing.T) {
	running := map[string]string{"port": "6443", "without": "operator", "storage": "etcd"}
	for name, test := range map[string]struct {
		asked map[string]string
		want  string
	}{
		"the same":            {map[string]string{"storage": "etcd", "without": "operator"}, ""},
		"what is left open":   {map[string]string{}, ""},
		"one that differs":    {map[string]string{"port": "7000"}, `port is "6443", asked for is "7000"`},
		"two, in their order": {map[string]string{"without": "", "port": "1"}, `port is "6443", asked for is "1", without is "operator", asked for is ""`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := differences(running, test.asked); got != test.want {
				t.Errorf("%s", got)
			}
		})
	}
}

func writeFile(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
