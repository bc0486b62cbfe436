package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/kubeconfig"
)

const (
	// neededMemory is about twice what an idle appliance takes, in bytes.
	neededMemory = 1 << 30
	// neededFiles is what an appliance under load has been seen to open.
	neededFiles = 512
)

func (p *program) checks(values common) []check {
	return []check{
		{name: "data folder", run: func(context.Context) (string, error) { return checkDataFolder(values) }},
		{name: "ports", run: checkPorts},
		{name: "memory", run: func(context.Context) (string, error) { return checkMemory() }},
		{name: "open files", run: func(context.Context) (string, error) { return checkFileLimit() }},
		{
			name: "kubeconfig",
			run:  func(context.Context) (string, error) { return p.checkKubeconfig() },
			fix:  p.fixKubeconfig,
		},
		{
			name: "leftovers",
			run:  func(context.Context) (string, error) { return p.checkLeftovers() },
			fix:  p.fixLeftovers,
		},
	}
}

// checkDataFolder does what up does with the folder, and leaves one that was
// not there as it was.
func checkDataFolder(values common) (string, error) {
	info, err := datadir.Inspect(values.dataDir)
	if err != nil {
		return "", err
	}
	if info.Held {
		return fmt.Sprintf("%s is in use by process %d", values.dataDir, info.PID), nil
	}
	folder, err := datadir.Open(values.dataDir, values.name)
	if err != nil {
		return "", err
	}
	if folder.Fresh() {
		err := folder.Prepare()
		return values.dataDir + " can be made", errors.Join(err, folder.Delete())
	}
	return values.dataDir + " can be used", errors.Join(folder.CheckSpace(), folder.Close())
}

func checkPorts(ctx context.Context) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("no port can be opened on 127.0.0.1: %w; is the loopback interface up?", err)
	}
	defer listener.Close()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	if err != nil {
		return "", fmt.Errorf("a port on 127.0.0.1 can't be reached: %w; does a firewall block it?", err)
	}
	return "ports on 127.0.0.1 can be opened and reached", connection.Close()
}

func checkMemory() (string, error) {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return "not known on " + runtime.GOOS, nil
	}
	available := int64(-1)
	for line := range strings.Lines(string(content)) {
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &available); err == nil {
			available <<= 10
			break
		}
	}
	switch {
	case available < 0:
		return "not known", nil
	case available < neededMemory:
		return "", fmt.Errorf("only %s are available, %s are needed: end other programs", megabytes(available), megabytes(neededMemory))
	}
	return megabytes(available) + " are available", nil
}

func checkFileLimit() (string, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return "", fmt.Errorf("asking for the limit: %w", err)
	}
	// The Go runtime raises its own limit to the hard one.
	if limit.Max < neededFiles {
		return "", fmt.Errorf("the limit is %d, %d are needed under load: raise it with ulimit -Hn, or in /etc/security/limits.conf", limit.Max, neededFiles)
	}
	return fmt.Sprintf("up to %d", limit.Max), nil
}

func (p *program) checkKubeconfig() (string, error) {
	file, err := kubeconfig.DefaultFile(p.env.Getenv)
	if err != nil {
		return "", err
	}
	stale, err := kubeconfig.Stale(file)
	if err != nil {
		return "", err
	}
	if len(stale) > 0 {
		return "", fmt.Errorf("%s has contexts of appliances that are gone (%s): remove them with taskctl doctor --fix", file, strings.Join(stale, ", "))
	}
	return file + " can be used", nil
}

func (p *program) fixKubeconfig(ctx context.Context) (string, error) {
	file, err := kubeconfig.DefaultFile(p.env.Getenv)
	if err != nil {
		return "", err
	}
	removed, err := kubeconfig.RemoveStale(ctx, file)
	return fmt.Sprintf("removed %s from %s", strings.Join(removed, ", "), file), err
}

func (p *program) leftovers() ([]string, error) {
	root, err := datadir.Root(p.env.Getenv)
	if err != nil {
		return nil, err
	}
	names, err := datadir.Names(root)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range names {
		path := filepath.Join(root, name)
		if info, err := datadir.Inspect(path); err == nil && !info.Held && info.Exists && info.State.Ephemeral {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

func (p *program) checkLeftovers() (string, error) {
	paths, err := p.leftovers()
	if err != nil {
		return "", err
	}
	if len(paths) > 0 {
		return "", fmt.Errorf("ephemeral appliances were killed and left %s: delete them with taskctl doctor --fix", strings.Join(paths, ", "))
	}
	return "none", nil
}

func (p *program) fixLeftovers(ctx context.Context) (string, error) {
	paths, err := p.leftovers()
	if err != nil {
		return "", err
	}
	var errs []error
	for _, path := range paths {
		_, err := clearFolder(ctx, common{name: filepath.Base(path), dataDir: path}, false)
		errs = append(errs, err)
	}
	return "deleted " + strings.Join(paths, ", "), errors.Join(errs...)
}
