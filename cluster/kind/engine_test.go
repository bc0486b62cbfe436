package kind

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeEngines puts programs into PATH, and nothing else but the shell's own
// tools: each is the body of a shell script.
func fakeEngines(t *testing.T, bodies map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, body := range bodies {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

const (
	rootful   = `{"ServerVersion":"28.1.0","CgroupVersion":"2","CgroupDriver":"systemd","OperatingSystem":"Debian","MemoryLimit":true,"PidsLimit":true,"CPUShares":true}`
	rootless  = `{"ServerVersion":"28.1.0","CgroupVersion":"2","CgroupDriver":"systemd","MemoryLimit":true,"PidsLimit":true,"CPUShares":true,"SecurityOptions":["name=seccomp,profile=builtin","name=rootless"]}`
	delegated = `{"host":{"cgroupVersion":"v2","cgroupControllers":["cpu","memory","pids"],"security":{"rootless":true}},"version":{"Version":"5.4.2"}}`
)

func prints(text string) string { return "/bin/cat <<'EOF'\n" + text + "\nEOF" }
func failsWith(text string) string {
	return "/bin/cat >&2 <<'EOF'\n" + text + "\nEOF\nexit 1"
}

func TestEnginesThatAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		engines map[string]string
		want    Engine
	}{
		"docker":                           {map[string]string{"docker": prints(rootful)}, Engine{Name: "docker", Version: "28.1.0", System: "Debian"}},
		"docker without root":              {map[string]string{"docker": prints(rootless)}, Engine{Name: "docker", Version: "28.1.0", Rootless: true}},
		"docker on cgroup v1":              {map[string]string{"docker": prints(strings.Replace(rootful, `"CgroupVersion":"2"`, `"CgroupVersion":"1"`, 1))}, Engine{Name: "docker", Version: "28.1.0", System: "Debian", CgroupV1: true}},
		"podman behind a docker that died": {map[string]string{"docker": failsWith("Cannot connect to the Docker daemon"), "podman": prints(delegated)}, Engine{Name: "podman", Version: "5.4.2", Rootless: true}},
	} {
		t.Run(name, func(t *testing.T) {
			fakeEngines(t, test.engines)
			engine, err := FindEngine(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			if *engine != test.want {
				t.Errorf("%+v, want %+v", *engine, test.want)
			}
		})
	}
}

func TestEnginesThatCannotBeUsed(t *testing.T) {
	for name, test := range map[string]struct {
		engines map[string]string
		asked   string
		want    []string
	}{
		"there is none":                 {nil, "", []string{"no container engine", "--cluster embedded"}},
		"the node's own is gone":        {nil, "docker", []string{"made with docker", "--recreate"}},
		"it is not running":             {map[string]string{"docker": failsWith("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?")}, "", []string{"docker is not running", "systemctl start docker"}},
		"the client answers for itself": {map[string]string{"docker": prints(`{"ServerVersion":"","ServerErrors":["no"]}`)}, "", []string{"docker is not running"}},
		"its socket is not for us":      {map[string]string{"docker": failsWith("permission denied while trying to connect to the Docker daemon socket")}, "", []string{"you may not use docker's socket", "usermod -aG docker"}},
		"nothing is delegated":          {map[string]string{"docker": prints(strings.Replace(rootless, `"PidsLimit":true`, `"PidsLimit":false`, 1))}, "", []string{"no cgroup controllers are delegated", "Delegate=yes"}},
		"rootless on cgroup v1":         {map[string]string{"docker": prints(strings.Replace(rootless, `"CgroupVersion":"2"`, `"CgroupVersion":"1"`, 1))}, "", []string{"rootless on cgroup v1"}},
		"podman lacks a controller":     {map[string]string{"podman": prints(strings.Replace(delegated, `"pids"`, `"io"`, 1))}, "", []string{"podman runs rootless", "Delegate=yes"}},
		"it says what nobody knows":     {map[string]string{"docker": prints("hello")}, "", []string{"can't be understood"}},
	} {
		t.Run(name, func(t *testing.T) {
			fakeEngines(t, test.engines)
			_, err := FindEngine(t.Context(), test.asked)
			if err == nil {
				t.Fatal("no error")
			}
			for _, text := range test.want {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("the error does not say %q: %v", text, err)
				}
			}
		})
	}
}

// answers is an engine that has the one image and answers info.
func answers(cases string) string {
	return "case \"$*\" in\ninfo*) " + prints(rootful) + "\n;;\n" + cases + "\nesac"
}

func TestAForeignClusterIsNotTouched(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "touched")
	inspected := `[{"State":{"Running":true},"Config":{"Image":"kindest/node:v1"},"Mounts":[{"Source":"/other/run","Destination":"/taskctl/run"}]}]`
	fakeEngines(t, map[string]string{"docker": answers("'container inspect'*) " + prints(inspected) + "\n;;\n*) echo \"$*\" >>" + mark + ";;")})
	node := Node{Engine: &Engine{Name: "docker"}, Cluster: "taskctl", SocketDir: "/ours/run"}
	c := &Cluster{Node: node, Recreate: true, Progress: func(string) {}}
	if err := c.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "not this appliance's") || !strings.Contains(err.Error(), "--name") {
		t.Errorf("error %v", err)
	}
	for name, change := range map[string]func() error{
		"stop":   func() error { return node.Stop(t.Context()) },
		"remove": func() error { return node.removeContainer(t.Context()) },
	} {
		if err := change(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if touched, err := os.ReadFile(mark); err == nil {
		t.Errorf("these commands were run: %s", touched)
	}
}

func TestNotToKnowIsNotToBeAbsent(t *testing.T) {
	fakeEngines(t, map[string]string{"docker": failsWith("Cannot connect to the Docker daemon")})
	node := Node{Engine: &Engine{Name: "docker"}, Cluster: "taskctl", SocketDir: "/ours/run"}
	if _, err := node.inspect(t.Context()); err == nil || !strings.Contains(err.Error(), "docker is not running") {
		t.Errorf("error %v", err)
	}
}

func TestImages(t *testing.T) {
	listed := prints("kindest/node:v1.36.1\nkindest/node:v1.37.2-local\nkindest/node:<none>\nbusybox:latest")
	for name, test := range map[string]struct {
		given, has string
		want       string
		present    bool
	}{
		"the given one, absent":         {given: "kindest/node:mine", want: "kindest/node:mine"},
		"the given one, present":        {given: "kindest/node:mine", has: "kindest/node:mine", want: "kindest/node:mine", present: true},
		"one of our version by its tag": {want: "kindest/node:v1.37.2-local", present: true},
	} {
		t.Run(name, func(t *testing.T) {
			fakeEngines(t, map[string]string{"docker": `case "$*" in "image ls"*) ` + listed + "\n;;\n*\" " + test.has + "\") [ -n '" + test.has + "' ];;\n*) exit 1;; esac"})
			image, present, err := (&Engine{Name: "docker"}).ChooseImage(t.Context(), test.given, "v1.37.2")
			if err != nil || image != test.want || present != test.present {
				t.Errorf("%s, %t, %v; want %s, %t", image, present, err, test.want, test.present)
			}
		})
	}
}

func TestAnImageThatIsNotThereOffline(t *testing.T) {
	fakeEngines(t, map[string]string{"docker": `case "$*" in "image ls"*) ` + prints("kindest/node:v1.37.2-local") + "\n;;\n*) " + failsWith("dial tcp: lookup registry-1.docker.io: no such host") + ";; esac"})
	err := (&Engine{Name: "docker"}).Pull(t.Context(), "kindest/node:v1", func(string) {})
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range []string{"kindest/node:v1 is not there", "no such host", "docker load", "--kind-image kindest/node:v1.37.2-local", "--cluster embedded"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
}

func TestAFrozenNodeIsThawedAndStopped(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "thawed")
	inspected := `[{"Id":"0123abc","State":{"Running":true},"Config":{"Image":"kindest/node:v1"},"Mounts":[{"Source":"/ours/run","Destination":"/taskctl/run"}]}]`
	fakeEngines(t, map[string]string{"docker": answers("'container inspect'*) " + prints(inspected) + "\n;;\n" +
		"stop*) if [ ! -e " + mark + " ]; then " + failsWith("tried to kill container, but did not receive an exit event") + "\nfi;;\n" +
		"run*kindest/node:v1*0123abc*) echo >" + mark + ";;\n*) exit 1;;")})
	node := Node{Engine: &Engine{Name: "docker", CgroupV1: true}, Cluster: "taskctl", SocketDir: "/ours/run"}
	if err := node.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Error("nothing was thawed")
	}
}
