package sqlite

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

const (
	// passiveBytes of new rows wake the background checkpoint.
	passiveBytes = 2 << 20
	// truncateFrames in the WAL (4 KiB each) make the writer itself restart
	// it: passive checkpoints never do while writes go on.
	truncateFrames = 16384
)

// checkpointer copies the WAL into the file on a connection of its own.
type checkpointer struct {
	conn    *conn
	pending int64        // bytes since the last wake, the writer's
	frames  atomic.Int64 // in the WAL at the last checkpoint
	failed  atomic.Pointer[error]

	// running is held during a checkpoint: SQLite refuses a second one at once,
	// and does not wait for the first whatever its busy timeout is.
	running sync.Mutex

	wake chan struct{}
	stop chan struct{}
	done sync.WaitGroup
}

func startCheckpointer(path string) (*checkpointer, error) {
	c, err := openConn(path, false)
	if err != nil {
		return nil, err
	}
	p := &checkpointer{conn: c, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	p.done.Add(1)
	go p.run()
	return p, nil
}

func (p *checkpointer) run() {
	defer p.done.Done()
	for {
		select {
		case <-p.stop:
			return
		case <-p.wake:
		}
		p.running.Lock()
		row, err := p.conn.integers("PRAGMA wal_checkpoint(PASSIVE)")
		p.running.Unlock()
		if err != nil {
			err = fmt.Errorf("checkpoint: %w", err)
			p.failed.Store(&err)
			continue
		}
		p.frames.Store(row[1])
	}
}

// wrote counts a stored batch; the writer calls it.
func (p *checkpointer) wrote(batch *backend.Batch) {
	for i := range batch.Versions {
		p.pending += int64(len(batch.Versions[i].Key)*2 + len(batch.Versions[i].Value) + 100)
	}
	p.pending += int64(len(batch.Sweep)) * 4096
	if p.pending < passiveBytes {
		return
	}
	p.nudge()
}

// nudge has what was written copied into the file soon; the writer calls it.
func (p *checkpointer) nudge() {
	p.pending = 0
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *checkpointer) overdue() bool { return p.frames.Load() >= truncateFrames }

// tryTruncate checkpoints everything and empties the WAL, on the writer's
// connection. What is in its way makes it try again later.
func (p *checkpointer) tryTruncate(writer *conn) error {
	if !p.running.TryLock() {
		return nil
	}
	defer p.running.Unlock()
	if err := writer.exec("PRAGMA busy_timeout = 20"); err != nil {
		return err
	}
	_, err := p.empty(writer)
	return errors.Join(err, writer.exec("PRAGMA busy_timeout = 5000"))
}

// truncate is tryTruncate, but waits for what is in its way: five seconds for
// readers.
func (p *checkpointer) truncate(writer *conn) error {
	p.running.Lock()
	defer p.running.Unlock()
	emptied, err := p.empty(writer)
	if err == nil && !emptied {
		err = errors.New("readers of old rows kept the write-ahead log from being emptied; try again when they have ended")
	}
	return err
}

func (p *checkpointer) empty(writer *conn) (emptied bool, err error) {
	row, err := writer.integers("PRAGMA wal_checkpoint(TRUNCATE)")
	if err != nil || row[0] != 0 {
		return false, err
	}
	p.frames.Store(0)
	return true, nil
}

func (p *checkpointer) close() error {
	close(p.stop)
	p.done.Wait()
	err := p.conn.close()
	if failed := p.failed.Load(); failed != nil {
		err = errors.Join(err, *failed)
	}
	return err
}
