package etcddb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/taskctl-dev/taskctl/storage/etcd"
)

// embeddedRequestBytes leaves room beside a request of the largest size that
// clients may send for what is stored with it.
const embeddedRequestBytes = 2 << 20

// Embedded is an etcd in this process.
type Embedded struct {
	// Dir is where its database lies; it is made when missing.
	Dir string
	// Socket is the path of the unix socket that it answers on, in a folder
	// that exists.
	Socket string
	// Log takes etcd's log, one JSON object a line; nil discards it.
	Log io.Writer
	// QuotaBytes is the database's size limit; 0 means package etcd's default.
	QuotaBytes int64
}

// OpenEmbedded starts an etcd in this process, which Close stops. The fields of
// the configuration that say where an etcd is found are not used.
//
// An error that etcd calls fatal (a failed write to the disk, say) ends this
// backend, not the process: it is started again when the engine next asks for
// it. After some of these errors etcd does not let go of its files; then each
// attempt says so, and the process has to be restarted.
func OpenEmbedded(ctx context.Context, server Embedded, config Config) (*Database, error) {
	config.Endpoints = []string{"unix://" + server.Socket}
	config.MaxRequestBytes = embeddedRequestBytes
	config.CAFile, config.CertFile, config.KeyFile, config.Username, config.Password = "", "", "", "", ""
	process := &process{server: etcd.Server{
		Dir: server.Dir, Socket: server.Socket, Log: server.Log, QuotaBytes: server.QuotaBytes,
		MaxRequestBytes: embeddedRequestBytes,
	}}
	if err := process.start(ctx); err != nil {
		return nil, err
	}
	d, err := Open(ctx, config)
	if err != nil {
		return nil, errors.Join(err, process.stop())
	}
	d.process = process
	return d, nil
}

// process is a run of the embedded etcd.
type process struct {
	server etcd.Server

	mu     sync.Mutex
	cancel context.CancelFunc
	ended  chan struct{} // closed when the run is over; nil before the first
	err    error         // of the run, once it is over
}

// start starts it unless it runs.
func (p *process) start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		select {
		case <-p.ended:
		default:
			return nil
		}
	}
	running, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan struct{})
	p.cancel, p.ended = cancel, ended
	go func() {
		defer close(ended)
		p.err = p.server.Run(running, func() { close(ready) })
	}()
	select {
	case <-ready:
		return nil
	case <-ended:
		cancel()
		if p.err == nil {
			return errors.New("the embedded etcd stopped before it was ready")
		}
		return p.err
	case <-ctx.Done():
		cancel()
		<-ended
		return fmt.Errorf("start the embedded etcd: %w", ctx.Err())
	}
}

// over is closed when the present run is over.
func (p *process) over() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// stop ends it and waits. It returns why it had ended before, if it had.
func (p *process) stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel()
	<-p.ended
	return p.err
}
