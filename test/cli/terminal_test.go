package cli

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal whose screen is what was written to it.
type terminal struct {
	screen *lockedBuffer
	master *os.File
	slave  *os.File
	read   chan struct{} // closed when nobody has the slave open any more
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Fd would make it a blocking one, whose Close does not end a Read.
	control, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	var unlockErr, numberErr error
	err = control.Control(func(fd uintptr) {
		unlockErr = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		number, numberErr = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
	})
	if err := errors.Join(err, unlockErr, numberErr); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{screen: &lockedBuffer{}, master: master, slave: slave, read: make(chan struct{})}
	go func() {
		defer close(term.read)
		_, _ = io.Copy(term.screen, master) // ends with an error when the slave is closed
	}()
	t.Cleanup(func() {
		slave.Close()
		master.Close()
		<-term.read
	})
	return term
}

// startAt starts the command with the terminal as its own: it begins a session, and
// gets a hangup when the terminal goes.
func (s *shell) startAt(term *terminal, command *exec.Cmd) *background {
	s.t.Helper()
	command.Stdin = term.slave
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	return s.startWith(command, term.slave, term.slave)
}

// TestSpinner stops an appliance that does not run: nothing is faster, and the
// spinner turns for its moment.
func TestSpinner(t *testing.T) {
	s := newShell(t)
	for _, test := range []struct {
		name            string
		env             []string
		flags           []string
		turns, coloured bool
		says            string
	}{
		{"on a terminal it turns, in colour", []string{"TERM=xterm"}, nil, true, true, "was not running"},
		{"NO_COLOR is honoured", []string{"TERM=xterm", "NO_COLOR=1"}, nil, true, false, "was not running"},
		{"a dumb terminal gets lines", []string{"TERM=dumb"}, nil, false, false, "was not running"},
		{"with -q there is nothing", []string{"TERM=xterm"}, []string{"-q"}, false, false, ""},
		{"JSON has none", []string{"TERM=xterm"}, []string{"-o", "json"}, false, false, `"stopped":false`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := s.in(t)
			term := newTerminal(t)
			command := s.command(append([]string{"down"}, test.flags...)...)
			command.Env = append(command.Env, test.env...)
			down := s.startAt(term, command)
			if code := down.wait(limit); code != 0 {
				t.Errorf("code %d", code)
			}
			term.slave.Close()
			<-term.read
			screen := term.screen.String()
			if turns := strings.Contains(screen, "\r\x1b[K"); turns != test.turns {
				t.Errorf("turns: %t, want %t: %q", turns, test.turns, screen)
			}
			if coloured := strings.Contains(screen, "\x1b[36m"); coloured != test.coloured {
				t.Errorf("coloured: %t, want %t: %q", coloured, test.coloured, screen)
			}
			if !strings.Contains(screen, test.says) || test.says == "" && screen != "" {
				t.Errorf("it says %q", screen)
			}
		})
	}
}

// TestClosedTerminal closes the window in which an appliance runs.
func TestClosedTerminal(t *testing.T) {
	s := newShell(t)
	term := newTerminal(t)
	command := s.command("up")
	command.Env = append(command.Env, "TERM=xterm")
	up := s.startAt(term, command)
	eventually(t, "ready", func() bool { return strings.Contains(term.screen.String(), "Press ^C to stop") })
	term.slave.Close()
	term.master.Close()
	if code := up.wait(limit); code != 0 {
		t.Errorf("code %d", code)
	}
	if out := s.must(3, "status").Stdout; !strings.Contains(out, "Last run:     stopped") {
		t.Errorf("%s", out)
	}
}

// TestReaderThatHasGone: `taskctl up 2>&1 | tee log`, and ^C reaches both.
func TestReaderThatHasGone(t *testing.T) {
	s := newShell(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	up := s.startWith(s.command(append([]string{"up"}, bare...)...), write, write)
	write.Close()
	seen := &lockedBuffer{}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(seen, read) // until it is closed
	}()
	eventually(t, "ready", func() bool { return strings.Contains(seen.String(), "Press ^C to stop") })
	read.Close()
	<-copied
	up.signal(syscall.SIGINT)
	if code := up.wait(limit); code != 130 {
		t.Errorf("code %d, want 130: %s", code, up.ProcessState)
	}
	if out := s.must(3, "status").Stdout; !strings.Contains(out, "Last run:     stopped") {
		t.Errorf("%s", out)
	}
}
