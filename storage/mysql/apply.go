package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-sql-driver/mysql"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

const (
	// statementText bounds what stands in a statement beside its rows.
	statementText = 4096
	// chunkBytes is the most that is sent at once where the server takes more.
	chunkBytes = 8 << 20
	// listed is how many IDs one IN list has.
	listed = 4096
)

// Apply stores the batch in one transaction, in one round trip unless it is
// larger than the server takes at once. ctx is looked at before the text with
// the COMMIT is sent and not any more.
func (s *session) Apply(ctx context.Context, batch *backend.Batch) error {
	limits := s.Limits()
	for i := range batch.Versions {
		if v := &batch.Versions[i]; len(v.Key) > limits.KeyBytes || len(v.Value) > limits.ValueBytes {
			return &backend.Rejected{Err: fmt.Errorf("a key of %d and a value of %d bytes are too long for this MySQL server (%d and %d); raise its max_allowed_packet",
				len(v.Key), len(v.Value), limits.KeyBytes, limits.ValueBytes)}
		}
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	inside, cancel := context.WithTimeout(s.ended, s.db.settings.CommitTimeout)
	defer cancel()

	w := s.write(batch)
	var found []int64
	for i := range w.texts {
		if err := ctx.Err(); err != nil {
			if i > 0 && !s.writer.rollback(inside) {
				return fmt.Errorf("give up a batch: %w", err)
			}
			return &backend.Rejected{Err: err, Retry: true}
		}
		counts, err := s.writer.exec(inside, string(w.texts[i].sql), w.texts[i].args)
		if err != nil {
			return s.failed(inside, err)
		}
		found = append(found, counts...)
	}
	return checkCounts(found, w.counts)
}

// failed says what an error means for the batch.
func (s *session) failed(ctx context.Context, err error) error {
	var refused *mysql.MySQLError
	if !errors.As(err, &refused) {
		return fmt.Errorf("commit: %w", err)
	}
	meaning := rejection(err)
	if meaning == nil || !s.writer.rollback(ctx) {
		return fmt.Errorf("write: %w", explain(err))
	}
	return meaning
}

// anyCount stands for a number of rows that does not matter.
const anyCount = -1

// checkCounts compares the numbers of rows that the statements found with those
// that they must have found. Where they differ, nobody knows what is stored.
func checkCounts(found, want []int64) error {
	same := len(found) == len(want)
	for i := 0; same && i < len(want); i++ {
		same = want[i] == anyCount || found[i] == want[i]
	}
	if !same {
		return fmt.Errorf("the server changed %v rows instead of %v", found, want)
	}
	return nil
}

// text is what is sent at once.
type text struct {
	sql  []byte
	args []driver.NamedValue
	size int // bytes at most, when the arguments are in their places
}

// writer collects statements into texts.
type writer struct {
	texts  []text
	counts []int64 // rows that each statement must find, or anyCount
	limit  int
}

func (w *writer) last() *text { return &w.texts[len(w.texts)-1] }

// room begins a new text if size more bytes might not fit into the last one.
func (w *writer) room(size int) (fresh bool) {
	if len(w.texts) > 0 && w.last().size+size <= w.limit {
		w.last().size += size
		return false
	}
	w.texts = append(w.texts, text{size: size})
	return true
}

// statement begins a statement that must find so many rows.
func (w *writer) statement(count int64, sql string) {
	w.counts = append(w.counts, count)
	w.raw(sql)
}

func (w *writer) raw(sql string) { w.last().sql = append(w.last().sql, sql...) }

func (w *writer) integer(n int64) { w.last().sql = strconv.AppendInt(w.last().sql, n, 10) }

func (w *writer) bytes(value []byte) {
	t := w.last()
	t.sql = append(t.sql, '?')
	if value == nil {
		value = []byte{}
	}
	t.args = append(t.args, driver.NamedValue{Ordinal: len(t.args) + 1, Value: value})
}

// integers writes "(a, b, c".
func (w *writer) integers(numbers ...int64) {
	for i, n := range numbers {
		if i == 0 {
			w.raw("(")
		} else {
			w.raw(",")
		}
		w.integer(n)
	}
}

func (s *session) write(batch *backend.Batch) *writer {
	w := &writer{limit: int(min(s.server.maxPacket-statementText, chunkBytes))}
	w.room(statementText)
	w.counts = append(w.counts, anyCount, anyCount, anyCount) // beginResults
	w.raw(begin)
	// The server itself compares epoch and last ID: a session whose time is
	// over, or whose memory is not what is stored, gives the row the number of
	// the fence. Assignments are made from left to right, so this one is first.
	w.statement(1, "UPDATE meta SET one = CASE WHEN epoch = ")
	w.integer(s.state.Epoch)
	w.raw(" AND last_id = ")
	w.integer(batch.AfterID)
	w.raw(" THEN 1 ELSE 0 END, last_rev = ")
	w.integer(batch.LastRev)
	w.raw(", last_id = ")
	w.integer(batch.LastID())
	if batch.Floor > 0 {
		w.raw(", floor = ")
		w.integer(batch.Floor)
	}
	if batch.Swept > 0 {
		w.raw(", swept = ")
		w.integer(batch.Swept)
	}
	w.raw(" WHERE one = 1; ")
	w.insert(batch.Versions)
	w.leases(batch.PutLeases)
	w.remove("leases", batch.DeleteLeases)
	w.remove("versions", batch.Sweep)
	w.room(len(commit))
	w.statement(anyCount, commit)
	return w
}

func (w *writer) insert(versions []backend.Version) {
	for i := range versions {
		v := &versions[i]
		switch fresh := w.room(rowText + 2*(len(v.Key)+len(v.Value))); {
		case fresh && i > 0:
			// The statement before ended with its text.
			fallthrough
		case i == 0:
			w.statement(0, "INSERT INTO versions (id, rev, sub, prev, create_rev, version, lease, deleted, `key`, value) VALUES ")
		default:
			w.raw(",")
		}
		w.counts[len(w.counts)-1]++
		deleted := int64(0)
		if v.Deleted {
			deleted = 1
		}
		w.integers(v.ID, v.Rev, v.Sub, v.Prev, v.Create, v.Version, v.Lease, deleted)
		w.raw(",")
		w.bytes(v.Key)
		if v.Deleted {
			w.raw(",NULL)")
		} else {
			w.raw(",")
			w.bytes(v.Value)
			w.raw(")")
		}
	}
	if len(versions) > 0 {
		w.raw("; ")
	}
}

func (w *writer) leases(leases []backend.Lease) {
	for len(leases) > 0 {
		some := leases[:min(len(leases), listed)]
		leases = leases[len(some):]
		w.room(statementText + rowText*len(some))
		w.statement(anyCount, "REPLACE INTO leases (id, ttl, deadline) VALUES ")
		for i, lease := range some {
			if i > 0 {
				w.raw(",")
			}
			w.integers(lease.ID, lease.TTL, lease.Deadline)
			w.raw(")")
		}
		w.raw("; ")
	}
}

func (w *writer) remove(table string, ids []int64) {
	for len(ids) > 0 {
		some := ids[:min(len(ids), listed)]
		ids = ids[len(some):]
		w.room(statementText + 21*len(some))
		w.statement(anyCount, "DELETE FROM "+table+" WHERE id IN ")
		w.integers(some...)
		w.raw("); ")
	}
}
