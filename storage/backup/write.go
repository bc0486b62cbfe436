package backup

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// Source is a key space at one revision.
type Source interface {
	// Revision is the one that Rows are read at.
	Revision() int64
	// Rows calls fn for every row in order of mod revisions.
	Rows(ctx context.Context, fn func(*mvccpb.KeyValue) error) error
	// Leases are the leases of that revision; others may be among them.
	Leases(ctx context.Context) ([]Lease, error)
}

// Summary is what a backup holds.
type Summary struct {
	Header
	Rows   int64 `json:"keys"`
	Leases int64 `json:"leases"`
	// Bytes are those of keys and values, before they were compressed.
	Bytes int64 `json:"bytes"`
}

// Write writes a backup of the source. program is the version of this program.
// What was written before an error is no backup: it has no end.
func Write(ctx context.Context, to io.Writer, source Source, program string) (Summary, error) {
	summary := Summary{Header: Header{Revision: source.Revision(), Taken: time.Now().UTC(), Program: program}}
	if _, err := io.WriteString(to, magic); err != nil {
		return summary, fmt.Errorf("write the backup: %w", err)
	}
	// The fastest level halves what etcd's values take; the next ones save
	// little more and take several times as long.
	compressed, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return summary, err
	}
	w := &frameWriter{to: compressed, sum: sha256.New()}
	if err := w.writeJSON(frameHeader, summary.Header); err != nil {
		return summary, fmt.Errorf("write the backup: %w", err)
	}
	used := map[int64]bool{}
	err = source.Rows(ctx, func(row *mvccpb.KeyValue) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		payload, err := proto.Marshal(row)
		if err != nil {
			return err
		}
		summary.Rows++
		summary.Bytes += int64(len(row.Key) + len(row.Value))
		if row.Lease != 0 {
			used[row.Lease] = true
		}
		return w.write(frameRow, payload)
	})
	if err != nil {
		return summary, fmt.Errorf("back up the keys: %w", err)
	}
	leases, err := source.Leases(ctx)
	if err != nil {
		return summary, fmt.Errorf("back up the leases: %w", err)
	}
	for _, lease := range leases {
		delete(used, lease.ID)
		summary.Leases++
		if err := w.writeJSON(frameLease, lease); err != nil {
			return summary, fmt.Errorf("write the backup: %w", err)
		}
	}
	// A lease that came and went while the rows were read is over: so will
	// its keys be, soon after they are back.
	for id := range used {
		summary.Leases++
		if err := w.writeJSON(frameLease, Lease{ID: id, TTL: 1}); err != nil {
			return summary, fmt.Errorf("write the backup: %w", err)
		}
	}
	last := end{Rows: summary.Rows, Leases: summary.Leases, SHA256: hex.EncodeToString(w.sum.Sum(nil))}
	if err := w.writeJSON(frameEnd, last); err != nil {
		return summary, fmt.Errorf("write the backup: %w", err)
	}
	if err := compressed.Close(); err != nil {
		return summary, fmt.Errorf("write the backup: %w", err)
	}
	return summary, nil
}
