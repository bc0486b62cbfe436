package dbserver

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
)

// Proxy passes TCP connections on to a server, until it is told to hold up a
// request.
type Proxy struct {
	listener net.Listener
	target   string
	done     sync.WaitGroup

	mu     sync.Mutex
	closed bool
	links  map[*link]bool
	armed  *Held
	// lie is what is said instead of truth in the server's answers.
	truth, lie []byte
}

// Held is a request that the proxy holds up: what the client sent in one read
// and everything after it on that connection. The server's answers on that
// connection are no longer passed on.
type Held struct {
	match []byte
	hit   chan struct{}
	link  *link // set before hit is closed
}

type link struct {
	client, server net.Conn

	// requesting is held while bytes go to the server or are held back, so that
	// they keep their order. The other direction has a lock of its own: a server
	// may read on only when its answers are read.
	requesting sync.Mutex
	holding    bool
	request    []byte // held back from the server

	answering sync.Mutex
	swallow   bool
	answered  chan struct{}
	answer    bytes.Buffer // swallowed
}

// NewProxy listens on a free port and passes on to target. It ends with the
// test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, target: target, links: map[*link]bool{}}
	p.done.Go(p.accept)
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		_ = listener.Close()
		p.mu.Unlock()
		p.CutAll()
		p.done.Wait()
	})
	return p
}

// Address is the host and port that it listens on.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Dial connects to the proxy whatever the address.
func (p *Proxy) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", p.Address())
}

// Hold makes the proxy hold up the next request that contains match.
func (p *Proxy) Hold(match string) *Held {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = &Held{match: []byte(match), hit: make(chan struct{})}
	return p.armed
}

// Pretend makes the server seem to say another text of the same length, such as
// another version.
func (p *Proxy) Pretend(truth, lie string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.truth, p.lie = []byte(truth), []byte(lie)
}

// CutAll ends every connection.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		_ = l.client.Close()
		_ = l.server.Close()
	}
}

// Wait waits until the request has arrived at the proxy.
func (h *Held) Wait(t testing.TB) {
	t.Helper()
	select {
	case <-h.hit:
	case <-t.Context().Done():
		t.Fatal("the request never came")
	}
}

// CutClient ends the client's side; the server's stays open.
func (h *Held) CutClient() { _ = h.link.client.Close() }

// Deliver sends the request to the server after all, and what the client still
// sends. The answer is swallowed.
func (h *Held) Deliver() {
	h.link.requesting.Lock()
	defer h.link.requesting.Unlock()
	_, _ = h.link.server.Write(h.link.request) // a server that closed does not mind
	h.link.request, h.link.holding = nil, false
}

// PassOn delivers the request and connects client and server again.
func (h *Held) PassOn() {
	h.link.answering.Lock()
	h.link.swallow = false
	h.link.answering.Unlock()
	h.Deliver()
}

// WaitAnswer waits until the server has answered what was delivered, or closed
// the connection, and returns what it said.
func (h *Held) WaitAnswer(t testing.TB) string {
	t.Helper()
	select {
	case <-h.link.answered:
	case <-t.Context().Done():
		t.Fatal("the server never answered")
	}
	h.link.answering.Lock()
	defer h.link.answering.Unlock()
	return h.link.answer.String()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{client: client, server: server, answered: make(chan struct{})}
		p.mu.Lock()
		if p.closed {
			_ = client.Close()
			_ = server.Close()
			p.mu.Unlock()
			return
		}
		p.links[l] = true
		p.mu.Unlock()
		p.done.Go(func() { p.requests(l) })
		p.done.Go(func() { p.answers(l) })
	}
}

// requests passes on what the client sends.
func (p *Proxy) requests(l *link) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(buffer)
		if n > 0 && p.request(l, buffer[:n]) != nil {
			_ = l.client.Close()
		}
		if err != nil {
			l.answering.Lock()
			swallow := l.swallow
			l.answering.Unlock()
			if !swallow {
				_ = l.server.Close()
			}
			return
		}
	}
}

// request passes on or holds back some bytes. When whoever waits for a request
// hears of it, the bytes are already there to be delivered.
func (p *Proxy) request(l *link, data []byte) error {
	l.requesting.Lock()
	defer l.requesting.Unlock()
	held := p.arrest(data)
	if held != nil {
		l.holding = true
		l.answering.Lock()
		l.swallow = true
		l.answering.Unlock()
	}
	if !l.holding {
		_, err := l.server.Write(data)
		return err
	}
	l.request = append(l.request, data...)
	if held != nil {
		held.link = l
		close(held.hit)
	}
	return nil
}

// arrest returns what waits for these bytes, if anything does. It waits for
// them only once.
func (p *Proxy) arrest(data []byte) *Held {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.armed == nil || !bytes.Contains(data, p.armed.match) {
		return nil
	}
	held := p.armed
	p.armed = nil
	return held
}

// answers passes on what the server says.
func (p *Proxy) answers(l *link) {
	var once sync.Once
	buffer := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(buffer)
		p.pretend(buffer[:n])
		l.answering.Lock()
		swallow := l.swallow
		if swallow {
			l.answer.Write(buffer[:n])
		}
		l.answering.Unlock()
		if swallow {
			once.Do(func() { close(l.answered) })
		} else if _, err := l.client.Write(buffer[:n]); err != nil {
			_ = l.server.Close()
		}
		if err != nil {
			if !swallow {
				_ = l.client.Close()
			}
			p.mu.Lock()
			delete(p.links, l)
			p.mu.Unlock()
			return
		}
	}
}

func (p *Proxy) pretend(answer []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := 0; len(p.truth) > 0; at += len(p.lie) {
		found := bytes.Index(answer[at:], p.truth)
		if found < 0 {
			return
		}
		at += found
		copy(answer[at:], p.lie)
	}
}
