package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// askLimit is how long an engine may take to say what it is. One that runs
// answers within 100 ms; one that hangs must not hold up a start.
const askLimit = 5 * time.Second

// Engine is a container engine that answered.
type Engine struct {
	// Name is its program: docker, nerdctl or podman.
	Name string
	// Version is what it says of itself.
	Version string
	// CgroupV1 says that its containers have cgroups of version 1.
	CgroupV1 bool
	// Rootless says that it runs without root's rights.
	Rootless bool
	// System is the operating system that it runs on, as it names it.
	System string
}

func (e *Engine) String() string { return e.Name + " " + e.Version }

// engineNames are the programs that are looked for, in kind's order.
var engineNames = [...]string{"docker", "nerdctl", "podman"}

// FindEngine asks each engine whose program is there, and returns the first one
// that answers; with a name that one alone. The error says what each lacks.
func FindEngine(ctx context.Context, name string) (*Engine, error) {
	var errs []error
	for _, candidate := range engineNames {
		if name != "" && candidate != name {
			continue
		}
		if _, err := exec.LookPath(candidate); err != nil {
			continue
		}
		engine, err := askEngine(ctx, candidate)
		if err == nil {
			return engine, nil
		}
		errs = append(errs, err)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case len(errs) > 0:
		return nil, errors.Join(errs...)
	case name != "":
		return nil, &Problem{
			Reason: fmt.Sprintf("the node was made with %s, and there is no program %s in PATH", name, name),
			Advice: "install it again, or make a new node with --recreate",
		}
	}
	return nil, &Problem{Reason: "there is no container engine", Advice: "install Docker, or use --cluster embedded"}
}

// engineInfo is what `info` prints; Docker and nerdctl have the first form.
type engineInfo struct {
	ServerVersion, CgroupVersion, CgroupDriver string
	OperatingSystem                            string
	SecurityOptions                            []string
	MemoryLimit, PidsLimit, CPUShares          bool

	Host struct {
		CgroupVersion     string
		CgroupControllers []string
		Os                string
		Security          struct{ Rootless bool }
	} `json:"host"`
	Version struct{ Version string } `json:"version"`
}

func askEngine(ctx context.Context, name string) (*Engine, error) {
	limited, cancel := context.WithTimeoutCause(ctx, askLimit, fmt.Errorf("no answer within %s", askLimit))
	defer cancel()
	engine := &Engine{Name: name}
	format := "{{json .}}"
	if name == "podman" {
		format = "json"
	}
	text, err := engine.run(limited, "info", "--format", format)
	if err != nil {
		return nil, engine.explain(err)
	}
	var info engineInfo
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		return nil, fmt.Errorf("%s answers what can't be understood: %w", name, err)
	}
	delegated := true
	if name == "podman" {
		engine.Version, engine.CgroupV1 = info.Version.Version, info.Host.CgroupVersion == "v1"
		engine.Rootless, engine.System = info.Host.Security.Rootless, info.Host.Os
		for _, controller := range []string{"cpu", "memory", "pids"} {
			delegated = delegated && slices.Contains(info.Host.CgroupControllers, controller)
		}
	} else {
		engine.Version, engine.CgroupV1 = info.ServerVersion, info.CgroupVersion == "1"
		engine.System = info.OperatingSystem
		engine.Rootless = slices.ContainsFunc(info.SecurityOptions, func(option string) bool {
			return slices.Contains(strings.Split(option, ","), "name=rootless")
		})
		delegated = info.CgroupDriver != "none" && info.MemoryLimit && info.PidsLimit && info.CPUShares
	}
	if engine.Version == "" {
		// The client answers for itself when nobody else does.
		return nil, &Problem{Reason: name + " is not running", Advice: "start it, or use --cluster embedded"}
	}
	return engine, engine.checkRootless(delegated)
}

// checkRootless refuses what kind's node can't run on.
func (e *Engine) checkRootless(delegated bool) error {
	switch {
	case !e.Rootless:
		return nil
	case e.CgroupV1:
		return &Problem{
			Reason: e.Name + " runs rootless on cgroup v1, where a node can't run",
			Advice: "boot with systemd.unified_cgroup_hierarchy=1, use a rootful engine, or use --cluster embedded",
		}
	case !delegated:
		return notDelegated(e.Name)
	}
	return nil
}

// explain turns the client's own words into what to do.
func (e *Engine) explain(err error) error {
	switch {
	case says(err, "permission denied"):
		return &Problem{
			Reason: fmt.Sprintf("you may not use %s's socket", e.Name),
			Advice: fmt.Sprintf("join its group (sudo usermod -aG %s $USER, then log in anew), or use --cluster embedded", e.Name),
			Err:    err,
		}
	case says(err, "cannot connect", "is the docker daemon running", "connection refused", "no such file or directory", "cannot access containerd socket"):
		return &Problem{
			Reason: e.Name + " is not running",
			Advice: fmt.Sprintf("start it (sudo systemctl start %s, or Docker Desktop), or use --cluster embedded", e.Name),
			Err:    err,
		}
	case errors.Is(err, context.DeadlineExceeded), says(err, "timeout"):
		return &Problem{Reason: fmt.Sprintf("%s does not answer within %s", e.Name, askLimit), Advice: "start it anew, or use --cluster embedded"}
	}
	return fmt.Errorf("%s can't be used: %w", e.Name, err)
}

func notDelegated(engine string) error {
	return &Problem{
		Reason: engine + " runs rootless, and no cgroup controllers are delegated to it",
		Advice: "set Delegate=yes for user@.service (https://kind.sigs.k8s.io/docs/user/rootless/), or use --cluster embedded",
	}
}
