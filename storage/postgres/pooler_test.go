package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/backendtest"
	"github.com/taskctl-dev/taskctl/storage/postgres"
	"github.com/taskctl-dev/taskctl/test/dbserver"
)

// TestTransactionPooler runs the conformance tests behind a pooler that gives
// each transaction to another server connection.
func TestTransactionPooler(t *testing.T) {
	backendtest.Run(t, backendtest.Implementation{New: func(t *testing.T) func(context.Context) (backend.Database, error) {
		dsn := dbserver.Postgres(t)
		p := newPooler(t, dsn)
		return func(ctx context.Context) (backend.Database, error) {
			return postgres.Open(ctx, postgres.Config{DSN: dsn, Term: term, Dial: p.dial})
		}
	}})
}

// pooler is the least of pgbouncer in transaction mode: clients share server
// connections, the longest unused one is taken for each transaction, process
// numbers are made up and startup parameters that it does not know are refused.
type pooler struct {
	t        *testing.T
	dsn      string
	listener net.Listener
	done     sync.WaitGroup

	mu      sync.Mutex
	free    []*pgconn.PgConn
	clients map[net.Conn]bool
	closed  bool
}

// spread is how many server connections the pooler opens before it uses one
// again.
const spread = 3

func newPooler(t *testing.T, dsn string) *pooler {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, _, _ := strings.Cut(dsn, "?")
	p := &pooler{t: t, dsn: address + "?sslmode=disable", listener: listener, clients: map[net.Conn]bool{}}
	p.done.Go(p.accept)
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		_ = listener.Close()
		for client := range p.clients {
			_ = client.Close()
		}
		p.mu.Unlock()
		p.done.Wait()
		for _, server := range p.free {
			_ = server.Close(context.Background())
		}
	})
	return p
}

func (p *pooler) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", p.listener.Addr().String())
}

func (p *pooler) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		if p.closed {
			_ = client.Close()
		}
		p.clients[client] = true
		p.mu.Unlock()
		p.done.Go(func() {
			defer client.Close()
			if err := p.serve(client); err != nil {
				p.t.Logf("pooler: %v", err)
			}
		})
	}
}

func (p *pooler) take() (*pgconn.PgConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) >= spread {
		server := p.free[0]
		p.free = p.free[1:]
		return server, nil
	}
	return pgconn.Connect(context.Background(), p.dsn)
}

func (p *pooler) give(server *pgconn.PgConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, server)
}

func (p *pooler) serve(client net.Conn) error {
	side := pgproto3.NewBackend(client, client)
	if again, err := p.welcome(side); !again || err != nil {
		return err
	}
	var server *pgconn.PgConn
	defer func() {
		if server != nil { // in a transaction: the client went away
			_ = server.Close(context.Background())
		}
	}()
	for {
		message, err := side.Receive()
		if err != nil {
			return nil //nolint:nilerr // the client is gone
		}
		if _, bye := message.(*pgproto3.Terminate); bye {
			return nil
		}
		if server == nil {
			if server, err = p.take(); err != nil {
				return err
			}
		}
		server.Frontend().Send(message)
		switch message.(type) {
		case *pgproto3.Query, *pgproto3.Sync:
			idle, err := relay(side, server)
			if err != nil {
				return err
			}
			if idle {
				p.give(server)
				server = nil
			}
		}
	}
}

// relay passes on answers until the server is ready again.
func relay(client *pgproto3.Backend, server *pgconn.PgConn) (idle bool, err error) {
	if err := server.Frontend().Flush(); err != nil {
		return false, err
	}
	for {
		message, err := server.Frontend().Receive()
		if err != nil {
			return false, err
		}
		client.Send(message)
		if ready, ok := message.(*pgproto3.ReadyForQuery); ok {
			return ready.TxStatus == 'I', client.Flush()
		}
		if _, rows := message.(*pgproto3.DataRow); rows {
			if err := client.Flush(); err != nil {
				return false, err
			}
		}
	}
}

// welcome answers a client's first messages; it returns false where there is
// nothing more to do.
func (p *pooler) welcome(client *pgproto3.Backend) (bool, error) {
	message, err := client.ReceiveStartupMessage()
	if err != nil {
		return false, nil //nolint:nilerr // a cancel request that was cut short
	}
	startup, ok := message.(*pgproto3.StartupMessage)
	if !ok {
		return false, nil // a cancel request
	}
	for name := range startup.Parameters {
		if !strings.Contains(" user database application_name client_encoding datestyle timezone standard_conforming_strings ", " "+strings.ToLower(name)+" ") {
			client.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "08P01", Message: "unsupported startup parameter: " + name})
			return false, errors.Join(fmt.Errorf("startup parameter %s", name), client.Flush())
		}
	}
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	client.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	client.Send(&pgproto3.BackendKeyData{ProcessID: 4_000_000_000, SecretKey: []byte{1, 2, 3, 4}})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	return true, client.Flush()
}
