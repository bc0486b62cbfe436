package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// helloTimeout limits how long a client may take for the TLS handshake and
// the first bytes that tell gRPC and HTTP/1 apart.
const helloTimeout = 10 * time.Second

// http2Hello is what every HTTP/2 client sends first (RFC 9113, 3.4); no
// HTTP/1 method starts like it.
var http2Hello = []byte("PRI * HTTP/2.0")

// splitListener accepts on several listeners and hands connections on to two:
// those that start with HTTP/2's preface to gRPC, the rest to HTTP/1. TLS is
// ended here, so both see plain connections. gRPC's own transport serves
// HTTP/2 itself, which is faster than its ServeHTTP behind net/http.
type splitListener struct {
	listeners []net.Listener
	grpc, web *handedListener
	logger    *slog.Logger
	closed    chan struct{}
	closeOnce sync.Once
	sniffing  sync.WaitGroup
}

func newSplitListener(listeners []net.Listener, logger *slog.Logger) *splitListener {
	closed := make(chan struct{})
	var address net.Addr
	if len(listeners) > 0 {
		address = listeners[0].Addr()
	}
	return &splitListener{
		listeners: listeners,
		grpc:      &handedListener{conns: make(chan net.Conn), closed: closed, address: address},
		web:       &handedListener{conns: make(chan net.Conn), closed: closed, address: address},
		logger:    logger,
		closed:    closed,
	}
}

// run accepts until close was called, and waits for all that it started.
func (s *splitListener) run() error {
	var accepting sync.WaitGroup
	failures := make(chan error, len(s.listeners))
	for _, listener := range s.listeners {
		accepting.Go(func() { failures <- s.accept(listener) })
	}
	var failed error
	for range s.listeners {
		if err := <-failures; err != nil {
			failed = errors.Join(failed, err)
			s.close() // one listener less than asked for is a failure of all
		}
	}
	accepting.Wait()
	s.sniffing.Wait()
	return failed
}

func (s *splitListener) accept(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			select {
			case <-s.closed:
				return nil
			default:
			}
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				continue
			}
			return fmt.Errorf("accept on %s: %w", listener.Addr(), err)
		}
		s.sniffing.Go(func() { s.hand(conn) })
	}
}

// hand finds out what a connection speaks and passes it on.
func (s *splitListener) hand(conn net.Conn) {
	stop := make(chan struct{})
	defer close(stop)
	s.sniffing.Go(func() { // a slow client must not hold up the stop
		select {
		case <-s.closed:
			_ = conn.SetDeadline(time.Now())
		case <-stop:
		}
	})
	to, ready, err := s.sniff(conn)
	if err != nil {
		if !errors.Is(err, io.EOF) { // a port check, for example
			s.logger.Debug("connection refused", "from", conn.RemoteAddr(), "error", err)
		}
		_ = conn.Close()
		return
	}
	select {
	case to.conns <- ready:
	case <-s.closed:
		_ = conn.Close()
	}
}

func (s *splitListener) sniff(conn net.Conn) (*handedListener, net.Conn, error) {
	if err := conn.SetDeadline(time.Now().Add(helloTimeout)); err != nil {
		return nil, nil, err
	}
	if secure, ok := conn.(*tls.Conn); ok {
		if err := secure.Handshake(); err != nil {
			return nil, nil, err
		}
	}
	hello := make([]byte, 0, len(http2Hello))
	to := s.grpc
	for len(hello) < len(http2Hello) {
		n, err := conn.Read(hello[len(hello):cap(hello)])
		hello = hello[:len(hello)+n]
		if !bytes.HasPrefix(http2Hello, hello) {
			to = s.web
			break
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return to, &sniffedConn{Conn: conn, hello: hello}, conn.SetDeadline(time.Time{})
}

func (s *splitListener) close() {
	s.closeOnce.Do(func() {
		close(s.closed)
		for _, listener := range s.listeners {
			if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				s.logger.Warn("close listener", "address", listener.Addr(), "error", err)
			}
		}
	})
}

// sniffedConn gives back the bytes that were read to find out what it speaks.
type sniffedConn struct {
	net.Conn
	hello []byte
}

func (c *sniffedConn) Read(p []byte) (int, error) {
	if len(c.hello) > 0 {
		n := copy(p, c.hello)
		c.hello = c.hello[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// handedListener is a listener whose connections were accepted elsewhere.
type handedListener struct {
	conns   chan net.Conn
	closed  chan struct{}
	address net.Addr
}

func (l *handedListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close does nothing: the listeners behind it are closed by their owner.
func (l *handedListener) Close() error   { return nil }
func (l *handedListener) Addr() net.Addr { return l.address }
