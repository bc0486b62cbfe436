package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPorts(t *testing.T) {
	s := newShell(t)
	args := append([]string{"up", "-d"}, bare...)
	s.must(0, args...)
	before := s.status()
	s.must(0, "down")

	t.Run("one that is taken meanwhile is replaced, and said", func(t *testing.T) {
		s := s.in(t)
		other, err := net.Listen("tcp", "127.0.0.1:"+before.port(t))
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		result := s.must(0, args...)
		after := s.status()
		if after.port(t) == before.port(t) || !strings.Contains(result.Stderr, "port "+before.port(t)+" of apiserver was taken") {
			t.Errorf("port %s, it was %s; stderr %q", after.port(t), before.port(t), result.Stderr)
		}
		if kubeconfig := readFile(t, s.kubeconfig()); !strings.Contains(kubeconfig, after.Server) {
			t.Errorf("kubeconfig:\n%s", kubeconfig)
		}
		s.kubectl("get", "namespaces")
		s.must(0, "down")
	})

	t.Run("one that was asked for and is taken is an error", func(t *testing.T) {
		s := s.in(t)
		other, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		_, port, _ := net.SplitHostPort(other.Addr().String())
		s.fails(1, []string{"up", "-d", "--port", port}, "port "+port+" is taken by another program", "--port")
	})

	t.Run("one that was asked for is used, and kept", func(t *testing.T) {
		s := s.in(t)
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(free.Addr().String())
		free.Close()
		s.must(0, append(args, "--port", port)...)
		if got := s.status().port(t); got != port {
			t.Errorf("port %s, want %s", got, port)
		}
		s.must(0, "down")
		s.must(0, args...)
		if got := s.status().port(t); got != port {
			t.Errorf("port %s after a restart, want %s", got, port)
		}
		s.must(0, "down")
	})
}

func TestOtherKubeconfigAndNoSwitch(t *testing.T) {
	s := newShell(t)
	other := s.home + "/deep/er/config"
	args := append([]string{"up", "-d", "--kubeconfig", other, "--switch-context=false"}, bare...)
	command := s.command(args...)
	command.Env = append(command.Env, "PATH="+s.fakeKubectl())
	up := s.runCommand(command)
	if want := "\n  kubectl --kubeconfig " + other + " --context taskctl get namespaces\n"; up.Code != 0 || !strings.Contains(up.Stderr, want) {
		t.Errorf("code %d; it does not say %q: %s", up.Code, want, up.Stderr)
	}
	command = s.command(args...)
	command.Env = append(command.Env, "PATH=/nowhere")
	if again := s.runCommand(command); !strings.Contains(again.Stderr, "\n  taskctl kubectl get namespaces\n") {
		t.Errorf("without a kubectl it says: %s", again.Stderr)
	}
	if content := readFile(t, other); !strings.Contains(content, "name: taskctl\n") || strings.Contains(content, "current-context: taskctl") {
		t.Errorf("kubeconfig:\n%s", content)
	}
	if _, err := os.Stat(s.kubeconfig()); !os.IsNotExist(err) {
		t.Errorf("the usual kubeconfig was made too: %v", err)
	}
	s.must(0, "down")
}

// fakeKubectl is a folder with a program of that name.
func (s *shell) fakeKubectl() string {
	s.t.Helper()
	folder := filepath.Join(s.home, "programs")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "kubectl"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		s.t.Fatal(err)
	}
	return folder
}

func TestRecreate(t *testing.T) {
	s := newShell(t)
	args := append([]string{"up", "-d", "-q"}, bare...)
	s.must(0, args...)
	s.kubectl("create", "configmap", "old")
	pid := s.status().PID
	s.must(0, append(args, "--recreate")...)
	if now := s.status(); now.code != 0 || now.PID == pid {
		t.Errorf("status %+v", now)
	}
	if out := s.kubectl("get", "configmaps", "-o", "name"); strings.Contains(out, "old") {
		t.Errorf("the old data is there: %q", out)
	}
	s.must(0, "down")
}
