package backendtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// store is one store under test, with what was opened of it.
type store struct {
	*testing.T
	ctx    context.Context
	opener func(context.Context) (backend.Database, error)
	open   []interface{ Close() error }
}

func (s *store) database() backend.Database {
	s.Helper()
	d, err := s.opener(s.ctx)
	if err != nil {
		s.Fatalf("open: %v", err)
	}
	s.open = append(s.open, d)
	return d
}

func (s *store) acquire(d backend.Database) backend.Session {
	s.Helper()
	session, err := d.Acquire(s.ctx)
	if err != nil {
		s.Fatalf("acquire: %v", err)
	}
	s.open = append(s.open, session)
	return session
}

// session opens the store and acquires it.
func (s *store) session() backend.Session {
	s.Helper()
	return s.acquire(s.database())
}

func (s *store) closeAll() {
	for _, c := range slices.Backward(s.open) {
		if err := c.Close(); err != nil {
			s.Errorf("close: %v", err)
		}
	}
}

func (s *store) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// apply stores a batch, in pieces where the database takes only so many
// versions, or a key only once, in an Apply.
func (s *store) apply(session backend.Session, batch *backend.Batch) {
	s.Helper()
	for _, piece := range pieces(session.Limits(), batch) {
		if err := session.Apply(s.ctx, piece); err != nil {
			s.Fatalf("apply: %v", err)
		}
	}
}

// pieces cuts a batch as the engine would have made it in the first place.
func pieces(limits backend.Limits, batch *backend.Batch) []*backend.Batch {
	if limits.Versions == 0 {
		return []*backend.Batch{batch}
	}
	var all []*backend.Batch
	rest := *batch
	for {
		keys := map[string]bool{}
		n, bytes := 0, 0
		for n < len(rest.Versions) && n < limits.Versions {
			v := &rest.Versions[n]
			bytes += len(v.Key) + len(v.Value)
			if n > 0 && (limits.KeyOnce && keys[string(v.Key)] || limits.BatchBytes > 0 && bytes > limits.BatchBytes) {
				break
			}
			keys[string(v.Key)] = true
			n++
		}
		if n == len(rest.Versions) {
			return append(all, &rest)
		}
		first := rest.Versions[:n]
		all = append(all, &backend.Batch{AfterID: rest.AfterID, LastRev: first[n-1].Rev, Versions: first})
		rest.AfterID, rest.Versions = rest.AfterID+int64(n), rest.Versions[n:]
	}
}

// put makes the version of a key with a revision that is one above its ID.
func put(id int64, key, value string) backend.Version {
	return backend.Version{ID: id, Rev: id + 1, Create: id + 1, Version: 1, Key: []byte(key), Value: []byte(value)}
}

// batchOf makes a batch of versions whose IDs follow one another.
func batchOf(versions ...backend.Version) *backend.Batch {
	last := versions[len(versions)-1]
	return &backend.Batch{AfterID: versions[0].ID - 1, LastRev: last.Rev, Versions: versions}
}

// newest collects what Newest returns.
func (s *store) newest(session backend.Session, from, end []byte, upTo int64) []backend.Version {
	s.Helper()
	var all []backend.Version
	s.must(session.Newest(s.ctx, from, end, upTo, func(v *backend.Version) error {
		all = append(all, *v)
		return nil
	}))
	return all
}

// scan collects what Scan returns.
func (s *store) scan(session backend.Session, after, upTo int64, values bool) []backend.Version {
	s.Helper()
	var all []backend.Version
	s.must(session.Scan(s.ctx, after, upTo, values, func(v *backend.Version) error {
		all = append(all, *v)
		return nil
	}))
	return all
}

// values collects what Values returns, in the order of ids.
func (s *store) values(session backend.Session, ids ...int64) [][]byte {
	s.Helper()
	all := make([][]byte, len(ids))
	calls := 0
	s.must(session.Values(s.ctx, ids, func(position int, value []byte) {
		all[position] = value
		calls++
	}))
	if calls != len(ids) {
		s.Fatalf("%d values for %d ids", calls, len(ids))
	}
	return all
}

func keysOf(versions []backend.Version) []string {
	keys := make([]string, len(versions))
	for i, v := range versions {
		keys[i] = string(v.Key)
	}
	return keys
}

func idsOf(versions []backend.Version) []int64 {
	ids := make([]int64, len(versions))
	for i, v := range versions {
		ids[i] = v.ID
	}
	return ids
}

func equal[T any](s *store, what string, got, want T) {
	s.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		s.Fatalf("%s is\n%s\nnot\n%s", what, shorten(g), shorten(w))
	}
}

func shorten(text string) string {
	if len(text) > 2000 {
		return text[:2000] + "…"
	}
	return text
}

func equalVersion(s *store, got, want backend.Version) {
	s.Helper()
	same := bytes.Equal(got.Key, want.Key) && bytes.Equal(got.Value, want.Value)
	got.Key, got.Value, want.Key, want.Value = nil, nil, nil, nil
	if !same || fmt.Sprint(got) != fmt.Sprint(want) {
		s.Fatalf("version is %+v, not %+v (keys and values equal: %t)", got, want, same)
	}
}
