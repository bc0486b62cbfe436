package datadir

import (
	"errors"
	"net"
	"testing"
)

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func TestPortIsKept(t *testing.T) {
	path := t.TempDir()
	folder := open(t, path)
	first, _, err := folder.Listen(t.Context(), "127.0.0.1", "apiserver", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := port(first)
	first.Close()
	folder.Close()

	again, replaced, err := open(t, path).Listen(t.Context(), "127.0.0.1", "apiserver", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if port(again) != want || replaced != 0 {
		t.Errorf("port %d (replaced %d), want %d", port(again), replaced, want)
	}
}

func TestPortThatIsTakenMeanwhileIsReplaced(t *testing.T) {
	folder := open(t, t.TempDir())
	taken, _, err := folder.Listen(t.Context(), "127.0.0.1", "apiserver", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	other, replaced, err := folder.Listen(t.Context(), "127.0.0.1", "apiserver", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if replaced != port(taken) || port(other) == port(taken) || folder.State().Ports["apiserver"] != port(other) {
		t.Errorf("port %d, replaced %d, recorded %v", port(other), replaced, folder.State().Ports)
	}
}

func TestPortThatWasAskedForIsNotReplaced(t *testing.T) {
	folder := open(t, t.TempDir())
	taken, _, err := folder.Listen(t.Context(), "127.0.0.1", "other", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, _, err = folder.Listen(t.Context(), "127.0.0.1", "apiserver", port(taken))
	var inUse *PortTakenError
	if !errors.As(err, &inUse) || inUse.Port != port(taken) {
		t.Errorf("error %v", err)
	}
}
