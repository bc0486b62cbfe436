package storage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"sync"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// append stores versions after what the backend holds, in as many batches as it
// wants. Their revisions may be below those that are there: nothing reads the
// backend by revisions before the move has ended.
func (p *movedPlace) append(ctx context.Context, revision int64, versions []backend.Version, leases []backend.Lease) error {
	limits := p.Session.Limits()
	for len(versions) > 0 || len(leases) > 0 {
		n, size := 0, 0
		for n < len(versions) && (limits.Versions == 0 || n < limits.Versions) {
			size += len(versions[n].Key) + len(versions[n].Value)
			if n > 0 && limits.BatchBytes > 0 && size > limits.BatchBytes {
				break
			}
			n++
		}
		batch := &backend.Batch{AfterID: p.lastID, LastRev: max(revision, p.lastRev), Versions: versions[:n:n], PutLeases: leases}
		for i := range batch.Versions {
			v := &batch.Versions[i]
			v.ID = p.lastID + int64(i) + 1
			if limits.KeyBytes > 0 && len(v.Key) > limits.KeyBytes || limits.ValueBytes > 0 && len(v.Value) > limits.ValueBytes {
				return fmt.Errorf("the key %q or its value is too long for backend %q", v.Key, p.Name)
			}
		}
		if err := p.apply(ctx, batch); err != nil {
			return err
		}
		versions, leases = versions[n:], nil
	}
	return nil
}

// apply stores a batch, again where the database says that it may succeed.
func (p *movedPlace) apply(ctx context.Context, batch *backend.Batch) error {
	const attempts = 10
	for attempt := 1; ; attempt++ {
		err := p.Session.Apply(ctx, batch)
		var rejected *backend.Rejected
		switch {
		case err == nil:
			p.lastID, p.lastRev = batch.LastID(), batch.LastRev
			return nil
		case errors.As(err, &rejected) && rejected.Retry && attempt < attempts:
		default:
			return fmt.Errorf("store in backend %q: %w", p.Name, err)
		}
	}
}

// forget removes all versions of keys that were in the backend before, and are
// deleted there: their numbers may be above those of what comes back.
func (p *movedPlace) forget(ctx context.Context, versions []backend.Version) error {
	known := map[string]bool{}
	for _, v := range versions {
		if p.newest[string(v.Key)] != nil {
			known[string(v.Key)] = true
		}
	}
	if len(known) == 0 {
		return nil
	}
	var ids []int64
	err := p.Session.Scan(ctx, 0, p.lastID, false, func(v *backend.Version) error {
		if known[string(v.Key)] {
			ids = append(ids, v.ID)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read backend %q: %w", p.Name, err)
	}
	for piece := range slices.Chunk(ids, 32) {
		if err := p.apply(ctx, &backend.Batch{AfterID: p.lastID, LastRev: p.lastRev, Sweep: piece}); err != nil {
			return err
		}
	}
	return nil
}

// values reads the values of versions.
func (p *movedPlace) values(ctx context.Context, versions []*backend.Version) ([][]byte, error) {
	ids := make([]int64, len(versions))
	for i, v := range versions {
		ids[i] = v.ID
	}
	values := make([][]byte, len(ids))
	err := p.Session.Values(ctx, ids, func(i int, value []byte) { values[i] = value })
	if err != nil {
		return nil, fmt.Errorf("read values of backend %q: %w", p.Name, err)
	}
	return values, nil
}

// compare reads all targets anew, and checks count and hash of what came there
// against what is in the sources.
func (m *mover) compare(ctx context.Context) (string, error) {
	copies := make([]map[string]*backend.Version, len(m.places))
	for i, p := range m.places {
		copies[i] = map[string]*backend.Version{}
		err := p.Session.Newest(ctx, nil, nil, p.lastID, func(v *backend.Version) error {
			if !v.Deleted {
				copies[i][string(v.Key)] = v
			}
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("read backend %q again: %w", p.Name, err)
		}
	}
	before, after := sha256.New(), sha256.New()
	for _, source := range m.places {
		for from := 0; from < len(source.misplaced); from += movePiece {
			to := min(from+movePiece, len(source.misplaced))
			values, err := source.values(ctx, source.misplaced[from:to])
			if err != nil {
				return "", err
			}
			for i, v := range source.misplaced[from:to] {
				target := source.targets[from+i]
				arrived := copies[target][string(v.Key)]
				if arrived == nil {
					return "", fmt.Errorf("the key %q did not arrive in backend %q", v.Key, m.places[target].Name)
				}
				value, err := m.places[target].values(ctx, []*backend.Version{arrived})
				if err != nil {
					return "", err
				}
				addTo(before, v, values[i])
				addTo(after, arrived, value[0])
			}
		}
	}
	if string(before.Sum(nil)) != string(after.Sum(nil)) {
		return "", errors.New("what arrived is not what was sent: the hashes differ")
	}
	return hex.EncodeToString(after.Sum(nil)), nil
}

func addTo(sum hash.Hash, v *backend.Version, value []byte) {
	fmt.Fprintf(sum, "%q %d %d %d %d %d ", v.Key, v.Rev, v.Create, v.Version, v.Lease, len(value))
	_, _ = sum.Write(value) // a hash takes everything
}

// keepOwnership renews the ownership of all backends until stop; the context
// ends when one is lost.
func (m *mover) keepOwnership(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	var keepers sync.WaitGroup
	for i := range m.databases.Backends {
		b := &m.databases.Backends[i]
		term := b.Session.Term()
		if term == 0 {
			continue
		}
		keepers.Go(func() {
			ticker := time.NewTicker(term / 3)
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
				if err := b.Session.Renew(ctx); err != nil && ctx.Err() == nil {
					cancel(fmt.Errorf("keep backend %q: %w", b.Name, err))
					return
				}
			}
		})
	}
	return ctx, func() { cancel(nil); keepers.Wait() }
}

// ForgetPlaces makes the data folder forget what was stored where, for a
// restore that makes the store anew.
func ForgetPlaces(dataDir string) error { return (&remembered{}).save(dataDir) }
