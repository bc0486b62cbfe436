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
	log, err := os.Create(s.log)
	if err != nil {
		return nil, errors.Join(err, s.remove())
	}
	defer log.Close()
	args := c.command(dir, s.address)
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = dir, log, log
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	if err := s.waitUntilReady(ctx); err != nil {
		tail, _ := os.ReadFile(s.log)
		return nil, errors.Join(fmt.Errorf("%w\n%s", err, tail[max(0, len(tail)-2000):]), s.stop())
	}
	return s, nil
}

func (s *server) waitUntilReady(ctx context.Context) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
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
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	ended := make(chan struct{})
	go func() {
		_ = s.cmd.Wait() // some say that they were ended by a signal
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill()
		<-ended
	}
	return s.remove()
}

func (s *server) remove() error { return errors.Join(s.cleanup(), os.RemoveAll(s.dir)) }
