package aggregator

import (
	"net"
	"sync"
)

// connections is a listener that knows its open connections, so that a client
// that neither reads nor hangs up can't hold the stop of the server.
type connections struct {
	net.Listener

	mu   sync.Mutex
	open map[*connection]struct{}
}

func track(listener net.Listener) *connections {
	return &connections{Listener: listener, open: map[*connection]struct{}{}}
}

// Accept implements net.Listener.
func (c *connections) Accept() (net.Conn, error) {
	accepted, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tracked := &connection{Conn: accepted, of: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[tracked] = struct{}{}
	return tracked, nil
}

// cut closes all open connections.
func (c *connections) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for open := range c.open {
		open.Conn.Close()
	}
}

type connection struct {
	net.Conn
	of *connections
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
