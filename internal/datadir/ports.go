package datadir

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// PortTakenError says that a port that was asked for is in use.
type PortTakenError struct{ Port int }

func (e *PortTakenError) Error() string {
	return fmt.Sprintf("port %d is taken by another program: choose another with --port, or leave --port out for a free one", e.Port)
}

// Listen opens a component's TCP port on host, an address of this machine: wanted if it is not 0
// (taken: *PortTakenError), else the one that the folder had before, else a
// free one. The port is recorded in state.json. replaced is the recorded port
// when it was taken meanwhile, else 0. The caller closes the listener.
func (f *Folder) Listen(ctx context.Context, host, component string, wanted int) (listener net.Listener, replaced int, err error) {
	kept := f.State().Ports[component]
	port := kept
	if wanted != 0 {
		port = wanted
	}
	listener, err = listen(ctx, host, port)
	if err != nil && wanted != 0 {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, 0, &PortTakenError{wanted}
		}
		return nil, 0, fmt.Errorf("opening port %d: %w; choose another with --port", wanted, err)
	}
	if err != nil && port != 0 {
		replaced = port
		listener, err = listen(ctx, host, 0)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("opening a port for %s: %w", component, err)
	}
	opened := listener.Addr().(*net.TCPAddr).Port
	if opened != kept {
		if err := f.Update(func(s *State) { s.Ports[component] = opened }); err != nil {
			listener.Close()
			return nil, 0, err
		}
	}
	return listener, replaced, nil
}

func listen(ctx context.Context, host string, port int) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
}
