package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const etcdName = "embedded etcd"

// contender is one server to measure: how it is started over an empty folder
// or database.
type contender struct {
	name string
	// command returns the program and its arguments; address is HOST:PORT.
	command func(dir, address string) []string
	// prepare makes the folder or database ready and returns what undoes it.
	prepare func(ctx context.Context, dir string) (cleanup func() error, err error)
}

// newContenders builds what is not built yet. All servers are durable: a write
// is answered when it is on disk.
func newContenders(ctx context.Context, s settings, scratch string) ([]contender, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	taskctl := s.taskctl
	if taskctl == "" {
		taskctl = filepath.Join(scratch, "taskctl")
		if err := build(ctx, filepath.Join("..", ".."), taskctl, "."); err != nil {
			return nil, err
		}
	}
	serve := func(spec string) func(dir, address string) []string {
		return func(dir, address string) []string {
			return []string{taskctl, "storage", "serve", "--storage", spec, "--data-dir", dir, "--listen", "http://" + address}
		}
	}
	all := []contender{
		{name: etcdName, command: func(dir, address string) []string { return []string{self, serveEtcd, dir + "|" + address} }},
		{name: "taskctl, SQLite", command: serve("sqlite")},
	}
	kine := filepath.Join(scratch, "kine")
	serveKine := func(endpoint string) func(dir, address string) []string {
		return func(dir, address string) []string {
			return []string{kine, "--listen-address", "tcp://" + address, "--metrics-bind-address", "0",
				"--endpoint", strings.ReplaceAll(endpoint, "DIR", dir)}
		}
	}
	all = append(all,
		contender{name: "kine, SQLite durable", command: serveKine("sqlite://DIR/state.db?_journal_mode=WAL&_busy_timeout=30000&_synchronous=FULL&_txlock=immediate&_stmt_cache_size=20&cache=shared")},
		contender{name: "kine, SQLite NORMAL", command: serveKine("sqlite://DIR/state.db?_journal_mode=WAL&_busy_timeout=30000&_synchronous=NORMAL&_txlock=immediate&_stmt_cache_size=20&cache=shared")},
	)
	if s.postgres != "" {
		db := newDatabase(s.postgres)
		all = append(all,
			contender{name: "taskctl, PostgreSQL", command: serve(db.dsn()), prepare: db.create},
			contender{name: "kine, PostgreSQL", command: serveKine(db.dsn()), prepare: db.create},
		)
	}
	var chosen []contender
	needKine := false
	for _, c := range all {
		if s.selected(c.name) {
			chosen = append(chosen, c)
			needKine = needKine || strings.HasPrefix(c.name, "kine")
		}
	}
	if needKine {
		if err := build(ctx, ".", kine, "github.com/k3s-io/kine"); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

func build(ctx context.Context, dir, output, pkg string) error {
	fmt.Fprintf(os.Stderr, "building %s\n", filepath.Base(output))
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", output, pkg)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w", pkg, err)
	}
	return nil
}

// freeAddress is a loopback address that nobody listened on a moment ago.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}
