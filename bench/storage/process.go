package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// server is a contender's process over an empty store.
type server struct {
	address string
	command []string
	cmd     *exec.Cmd
	log     string
	dir     string
	cleanup func() error
}

// start starts a contender and waits until it answers a read.
func start(ctx context.Context, c contender) (*server, error) {
	dir, err := os.MkdirTemp("", "taskctl-bench-data-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, log: filepath.Join(dir, "log"), cleanup: func() error { return nil }}
	if c.prepare != nil {
		if s.cleanup, err = c.prepare(ctx, dir); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	if s.address, err = freeAddress(); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	s.command = c.command(dir, s.address)
	if err := s.run(ctx); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

// run starts the process over what is stored and waits until it answers a read.
// After an error there is no process.
func (s *server) run(ctx context.Context) error {
	log, err := os.Create(s.log)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = exec.Command(s.command[0], s.command[1:]...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.dir, log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	if err := s.waitUntilReady(ctx); err != nil {
		s.end()
		tail, _ := os.ReadFile(s.log)
		return fmt.Errorf("%w\n%s", err, tail[max(0, len(tail)-2000):])
	}
	return nil
}

func (s *server) waitUntilReady(ctx context.Context) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		_, err := client.Get(attempt, "/registry/ready")
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

func (s *server) connect() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + s.address}, DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
	})
}

// stop ends the process and removes what it stored.
func (s *server) stop() error {
	s.end()
	return s.remove()
}

// end ends the process.
func (s *server) end() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	ended := make(chan struct{})
	go func() {
		_ = s.cmd.Wait() // some say that they were ended by a signal
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
		<-ended
	}
}

func (s *server) remove() error { return errors.Join(s.cleanup(), os.RemoveAll(s.dir)) }
