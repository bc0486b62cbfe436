package robustness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// postgresServer is a PostgreSQL server of the test's own, with default,
// durable settings, that can be killed and started again.
type postgresServer struct {
	bin, dir   string
	port       int
	credential *syscall.Credential
	cmd        *exec.Cmd
}

// postgresPrograms finds the folder of initdb and postgres.
func postgresPrograms() (string, error) {
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // Debian's
	for _, folder := range append(filepath.SplitList(os.Getenv("PATH")), folders...) {
		if _, err := os.Stat(filepath.Join(folder, "initdb")); err == nil {
			return folder, nil
		}
	}
	return "", errors.New("initdb is neither in PATH nor in /usr/lib/postgresql/*/bin")
}

// newPostgresServer makes a cluster in a folder of its own and starts it.
func newPostgresServer(t *testing.T) *postgresServer {
	t.Helper()
	bin, err := postgresPrograms()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("CI must have PostgreSQL: %v", err)
		}
		t.Skipf("no PostgreSQL to test with: %v", err)
	}
	s := &postgresServer{bin: bin}
	if s.dir, err = os.MkdirTemp("", "pg"); err != nil { // sockets need short paths
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill()
		_ = os.RemoveAll(s.dir)
	})
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		if s.credential, err = credentialOf("postgres"); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(s.dir, int(s.credential.Uid), int(s.credential.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	if output, err := s.command("initdb", "-D", s.data(), "-A", "trust", "-U", "postgres").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, output)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.port = listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func credentialOf(name string) (*syscall.Credential, error) {
	account, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func (s *postgresServer) data() string { return filepath.Join(s.dir, "data") }

func (s *postgresServer) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.credential}
	return cmd
}

// start starts the server and waits until it answers. After a kill it may take
// a few tries until what the old one left is gone.
func (s *postgresServer) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		cmd := s.command("postgres", "-D", s.data(), "-p", strconv.Itoa(s.port), "-k", s.dir, "-c", "listen_addresses=127.0.0.1")
		if err := cmd.Start(); err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		if err := s.await(ctx, ended); err == nil {
			s.cmd = cmd
			return nil
		} else if ctx.Err() != nil {
			_ = cmd.Process.Kill()
			return fmt.Errorf("start PostgreSQL: %w", err)
		}
	}
}

// await returns when a connection can be made; its error says that the
// process ended first.
func (s *postgresServer) await(ctx context.Context, ended <-chan error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if conn, err := pgx.Connect(ctx, s.dsn()); err == nil {
			return conn.Close(ctx)
		}
		select {
		case err := <-ended:
			return fmt.Errorf("the server ended: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// kill ends the server with SIGKILL; its children end by themselves soon.
func (s *postgresServer) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	s.cmd = nil
}

func (s *postgresServer) dsn() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.port)
}
