package dbserver

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startTimeout bounds the start of a server.
const startTimeout = 60 * time.Second

// Server is a throw-away database server. It ends with its test.
type Server struct {
	// DSN is the address in the form that taskctl takes.
	DSN string
	// Address is the host and port that the server listens on.
	Address string

	t       testing.TB
	command func() *exec.Cmd
	answers func() error
	running *exec.Cmd
	log     *os.File
}

// NewProgram makes a server of the test's own that command runs, with a folder
// and an address of its own; answers says whether it can be used. It is not
// started yet.
func NewProgram(t testing.TB, command func(dir, address string) *exec.Cmd, answers func(address string) error) *Server {
	t.Helper()
	s, dir, _ := newServer(t, "")
	s.command = func() *exec.Cmd { return command(dir, s.Address) }
	s.answers = func() error { return answers(s.Address) }
	return s
}

// newServer makes a folder that the server's user can read and write.
func newServer(t testing.TB, account string) (s *Server, dir string, as func(*exec.Cmd) *exec.Cmd) {
	t.Helper()
	dir, err := os.MkdirTemp("", "taskctl-server-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	s = &Server{t: t, log: log, Address: freeAddress(t)}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			if text, err := os.ReadFile(log.Name()); err == nil {
				t.Logf("the server's log ends:\n%s", lastLines(text, 20))
			}
		}
		_ = log.Close()
	})
	return s, dir, runAs(t, account, dir)
}

// runAs makes commands run as the account, if one is named, when this process
// is root, as which database servers refuse to run.
func runAs(t testing.TB, account, dir string) func(*exec.Cmd) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 || account == "" {
		return func(c *exec.Cmd) *exec.Cmd { return c }
	}
	who, err := user.Lookup(account)
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(who.Uid)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.Atoi(who.Gid)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return func(c *exec.Cmd) *exec.Cmd {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		c.Dir = dir
		return c
	}
}

// Start starts the server and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	s.Launch()
	s.Await()
}

// Launch starts the server without waiting for it.
func (s *Server) Launch() {
	s.t.Helper()
	command := s.command()
	command.Stdout, command.Stderr = s.log, s.log
	if err := command.Start(); err != nil {
		s.t.Fatalf("start the server: %v", err)
	}
	s.running = command
}

// Await waits until the server answers.
func (s *Server) Await() {
	s.t.Helper()
	var err error
	if !Eventually(startTimeout, func() bool { err = s.answers(); return err == nil }) {
		s.t.Fatalf("the server does not answer: %v", err)
	}
}

// Kill ends the server with all its processes at once, as a crash does.
func (s *Server) Kill() {
	if s.running == nil {
		return
	}
	children := childrenOf(s.running.Process.Pid)
	_ = s.running.Process.Kill()
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = s.running.Wait()
	s.running = nil
}

// Signal sends a signal to the server's main process.
func (s *Server) Signal(signal os.Signal) {
	s.t.Helper()
	if err := s.running.Process.Signal(signal); err != nil {
		s.t.Fatalf("signal the server: %v", err)
	}
}

// childrenOf lists the processes that a process has started.
func childrenOf(pid int) []int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	var children []int
	for field := range strings.FieldsSeq(string(text)) {
		if child, err := strconv.Atoi(field); err == nil {
			children = append(children, child)
		}
	}
	return children
}

// Eventually asks every 20 ms whether a condition holds, until it does or the
// time is over.
func Eventually(limit time.Duration, condition func() bool) bool {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(limit); time.Now().Before(end); <-ticker.C {
		if condition() {
			return true
		}
	}
	return condition()
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func lastLines(text []byte, count int) []byte {
	lines := bytes.Split(text, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-count):], []byte("\n"))
}

func output(t testing.TB, command *exec.Cmd) {
	t.Helper()
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, text)
	}
}
