package dbserver

import (
	"io"
	"net"
	"testing"
	"time"
)

const (
	request = "a request with a marker"
	rest    = ", and the rest of it"
	limit   = 30 * time.Second
)

// TestDelivered hands a request on in the very moment in which it is reported,
// while the client is still sending. Nothing of it may stay behind.
func TestDelivered(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(*Held)
		// answered says whether the client hears from the server again.
		answered bool
	}{
		{"a request that is delivered arrives whole", (*Held).Deliver, false},
		{"a request that is passed on arrives whole and is answered", (*Held).PassOn, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 200 {
				delivered(t, test.end, test.answered)
			}
		})
	}
}

func delivered(t *testing.T, end func(*Held), answered bool) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	proxy := NewProxy(t, listener.Addr().String())
	client, err := proxy.Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	for _, connection := range []net.Conn{client, server} {
		if err := connection.SetDeadline(time.Now().Add(limit)); err != nil {
			t.Fatal(err)
		}
	}

	held := proxy.Hold("marker")
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(client, request)
		if err == nil {
			_, err = io.WriteString(client, rest)
		}
		sent <- err
	}()
	held.Wait(t)
	end(held)
	got := make([]byte, len(request+rest))
	if n, err := io.ReadFull(server, got); err != nil {
		t.Fatalf("only %q arrived: %v", got[:n], err)
	}
	if string(got) != request+rest {
		t.Errorf("%q arrived", got)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(server, "done"); err != nil {
		t.Fatal(err)
	}
	if !answered {
		if said := held.WaitAnswer(t); said == "" {
			t.Error("the answer was not swallowed")
		}
		return
	}
	if _, err := io.ReadFull(client, got[:4]); err != nil || string(got[:4]) != "done" {
		t.Errorf("the client got %q, %v", got[:4], err)
	}
}
