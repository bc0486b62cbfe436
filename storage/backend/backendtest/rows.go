package backendtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

func emptyStore(s *store) {
	session := s.session()
	state := session.State()
	if state.Epoch < 1 {
		s.Errorf("epoch %d of the first session", state.Epoch)
	}
	state.Epoch = 0
	equal(s, "state", state, backend.State{LastRev: 1})
	equal(s, "keys", len(s.newest(session, []byte{0}, nil, 0)), 0)
	equal(s, "versions", len(s.scan(session, 0, 0, true)), 0)
	if _, _, found, err := session.Next(s.ctx, 0); found || err != nil {
		s.Errorf("next of nothing: found %t, error %v", found, err)
	}
}

func everyField(s *store) {
	session := s.session()
	first := backend.Version{ID: 1, Rev: 1 << 40, Sub: 0, Create: 1 << 40, Version: 1, Lease: 1<<62 + 7, Key: []byte("key"), Value: []byte("value")}
	second := backend.Version{ID: 2, Rev: 1 << 40, Sub: 1, Create: 1 << 40, Version: 1, Lease: -5, Key: []byte("other"), Value: []byte("")}
	third := backend.Version{ID: 3, Rev: 1<<40 + 1, Sub: 70000, Prev: 1, Deleted: true, Key: []byte("key")}
	s.apply(session, batchOf(first, second))
	s.apply(session, batchOf(third))
	all := s.scan(session, 0, 3, true)
	equal(s, "number of versions", len(all), 3)
	for i, want := range []backend.Version{first, second, third} {
		equalVersion(s, all[i], want)
	}
	if all[2].Value != nil {
		s.Errorf("a tombstone has the value %q", all[2].Value)
	}
	newest := s.newest(session, []byte("key"), []byte("key\x00"), 3)
	equal(s, "number of keys", len(newest), 1)
	equalVersion(s, newest[0], backend.Version{ID: 3, Rev: 1<<40 + 1, Deleted: true, Key: []byte("key")})
	newest = s.newest(session, []byte("key"), []byte("key\x00"), 2)
	equalVersion(s, newest[0], backend.Version{ID: 1, Rev: 1 << 40, Create: 1 << 40, Version: 1, Lease: 1<<62 + 7, Key: []byte("key")})
}

// awkward are byte strings that a text protocol, a collation or an encoding
// could change.
func awkward() [][]byte {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	return [][]byte{
		every, {0}, {0, 0}, {255, 254, 0, 255}, []byte("a"), []byte("A"), []byte("a "), []byte("a\x00"), []byte("ä"), []byte("\xc3"),
		[]byte(`'"\'\\'; DROP TABLE versions; -- ? %s ${x} :a $1`), []byte(`\`), []byte(`\\`), []byte("\\x00"), []byte("\n\r\t\x1a\b"),
		[]byte("/registry/pods/default/a"), []byte("/registry/pods/default/A"), []byte("_binary'x'"), bytes.Repeat([]byte{0xff}, 2048), bytes.Repeat([]byte("k"), 2047),
		[]byte("日本語"), []byte("\xf0\x9f\x92\xa9"),
	}
}

func bytesAsTheyAre(s *store) {
	session := s.session()
	all := awkward()
	batch := &backend.Batch{}
	for i, b := range all {
		v := put(int64(i+1), string(b), string(all[len(all)-1-i]))
		batch.Versions = append(batch.Versions, v)
		batch.LastRev = v.Rev
	}
	s.apply(session, batch)
	for i, v := range s.scan(session, 0, int64(len(all)), true) {
		equalVersion(s, v, batch.Versions[i])
		found := s.newest(session, v.Key, append(bytes.Clone(v.Key), 0), int64(len(all)))
		if len(found) != 1 || found[0].ID != v.ID {
			s.Fatalf("key %q has versions %v", v.Key, idsOf(found))
		}
		equal(s, "value", s.values(session, v.ID)[0], v.Value)
	}
}

func orderOfKeys(s *store) {
	session := s.session()
	all := awkward()
	batch := &backend.Batch{}
	var want []string
	for i, b := range all {
		v := put(int64(i+1), string(b), "")
		batch.Versions, batch.LastRev = append(batch.Versions, v), v.Rev
		want = append(want, string(b))
	}
	slices.Sort(want)
	s.apply(session, batch)
	equal(s, "order", fmt.Sprintf("%q", keysOf(s.newest(session, []byte{0}, nil, int64(len(all))))), fmt.Sprintf("%q", want))
}

func rangeBounds(s *store) {
	session := s.session()
	s.apply(session, batchOf(put(1, "a", ""), put(2, "b", ""), put(3, "b\x00", ""), put(4, "c", ""), put(5, "d", "")))
	for _, test := range []struct {
		from, end string
		want      []string
	}{
		{"a", "d", []string{"a", "b", "b\x00", "c"}},
		{"a", "a\x00", []string{"a"}},
		{"b", "b\x00", []string{"b"}},
		{"b\x00", "c", []string{"b\x00"}},
		{"c\x00", "d", []string{}},
		{"d", "a", []string{}},
		{"", "b", []string{"a"}},
	} {
		equal(s, fmt.Sprintf("range [%q, %q)", test.from, test.end), keysOf(s.newest(session, []byte(test.from), []byte(test.end), 5)), test.want)
	}
	equal(s, "range without end", keysOf(s.newest(session, []byte("c"), nil, 5)), []string{"c", "d"})
	equal(s, "range of everything", len(s.newest(session, nil, nil, 5)), 5)
}

func newestUpTo(s *store) {
	session := s.session()
	second, third := put(3, "a", "2"), put(4, "a", "")
	second.Prev, second.Create, second.Version = 1, 2, 2
	third.Prev, third.Create, third.Version, third.Deleted, third.Value = 3, 0, 0, true, nil
	s.apply(session, batchOf(put(1, "a", "1"), put(2, "b", "1"), second))
	s.apply(session, batchOf(third))
	for upTo, want := range map[int64][]int64{0: {}, 1: {1}, 2: {1, 2}, 3: {3, 2}, 4: {4, 2}} {
		equal(s, fmt.Sprintf("IDs up to %d", upTo), idsOf(s.newest(session, []byte("a"), []byte("z"), upTo)), want)
	}
}

func hotKey(s *store) {
	session := s.session()
	const versions = 5000
	batch := batchOf(put(1, "before", ""))
	for id := int64(2); id <= versions; id++ {
		batch.Versions = append(batch.Versions, put(id, "hot", "value"))
	}
	last := put(versions+1, "later", "")
	batch.Versions, batch.LastRev = append(batch.Versions, last), last.Rev
	s.apply(session, batch)
	for _, upTo := range []int64{2, 600, 4097, versions} {
		equal(s, "IDs", idsOf(s.newest(session, []byte("a"), []byte("z"), upTo)), []int64{1, upTo})
	}
	equal(s, "IDs", idsOf(s.newest(session, []byte("a"), []byte("z"), versions+1)), []int64{1, versions, versions + 1})
}

func manyKeys(s *store) {
	session := s.session()
	const keys = 3000
	var want []string
	id := int64(0)
	for round := range 2 {
		batch := &backend.Batch{AfterID: id}
		for i := range keys {
			if round == 1 && i%3 != 0 {
				continue // a third has two versions
			}
			id++
			v := put(id, fmt.Sprintf("/key/%05d/%s", i, strings.Repeat("x", i%100)), "value")
			batch.Versions, batch.LastRev = append(batch.Versions, v), v.Rev
			if round == 0 {
				want = append(want, string(v.Key))
			}
		}
		s.apply(session, batch)
	}
	got := s.newest(session, []byte("/key/"), []byte("/key0"), id)
	equal(s, "keys", fmt.Sprint(keysOf(got)), fmt.Sprint(want))
	for i, v := range got {
		if newer := v.ID > keys; newer != (i%3 == 0) {
			s.Fatalf("key %q has the version %d", v.Key, v.ID)
		}
	}
	equal(s, "number of versions", len(s.scan(session, 0, id, false)), int(id))
}

func scanBounds(s *store) {
	session := s.session()
	s.apply(session, batchOf(put(1, "a", "1"), put(2, "b", "2"), put(3, "c", "3"), put(4, "d", "4")))
	equal(s, "IDs in (1, 3]", idsOf(s.scan(session, 1, 3, false)), []int64{2, 3})
	equal(s, "IDs in (4, 4]", idsOf(s.scan(session, 4, 4, false)), []int64{})
	for _, v := range s.scan(session, 0, 4, false) {
		if v.Value != nil {
			s.Errorf("version %d has the value %q, which was not asked for", v.ID, v.Value)
		}
	}
	equal(s, "value of 2", string(s.scan(session, 1, 2, true)[0].Value), "2")
}

func keptSlices(s *store) {
	session := s.session()
	batch := &backend.Batch{}
	for id := int64(1); id <= 100; id++ {
		v := put(id, fmt.Sprintf("key %03d", id), strings.Repeat(fmt.Sprint(id), 50))
		batch.Versions, batch.LastRev = append(batch.Versions, v), v.Rev
	}
	s.apply(session, batch)
	for i, v := range s.scan(session, 0, 100, true) {
		equalVersion(s, v, batch.Versions[i])
	}
	for i, v := range s.newest(session, []byte("k"), nil, 100) {
		equal(s, "key", string(v.Key), string(batch.Versions[i].Key))
	}
	for i, value := range s.values(session, idsOf(batch.Versions)...) {
		equal(s, "value", string(value), string(batch.Versions[i].Value))
	}
}

func endedScan(s *store) {
	session := s.session()
	batch := &backend.Batch{PutLeases: []backend.Lease{{ID: 1}, {ID: 2}}}
	for id := int64(1); id <= 2000; id++ {
		v := put(id, fmt.Sprintf("key %05d", id), "value")
		batch.Versions, batch.LastRev = append(batch.Versions, v), v.Rev
	}
	s.apply(session, batch)
	failure := errors.New("the callback's own")
	for _, test := range []struct{ give, want error }{{backend.ErrStop, nil}, {failure, failure}} {
		for name, scan := range map[string]func(fn func() error) error{
			"newest": func(fn func() error) error {
				return session.Newest(s.ctx, []byte("k"), nil, 2000, func(*backend.Version) error { return fn() })
			},
			"scan": func(fn func() error) error {
				return session.Scan(s.ctx, 0, 2000, true, func(*backend.Version) error { return fn() })
			},
			"leases": func(fn func() error) error {
				return session.Leases(s.ctx, func(backend.Lease) error { return fn() })
			},
		} {
			for _, after := range []int{1, 2} {
				calls := 0
				err := scan(func() error {
					if calls++; calls == after {
						return test.give
					}
					return nil
				})
				if !errors.Is(err, test.want) || calls != after {
					s.Errorf("%s: error %v after %d calls", name, err, calls)
				}
			}
		}
	}
}

func nextVersion(s *store) {
	session := s.session()
	s.apply(session, batchOf(put(1, "a", ""), put(2, "b", ""), put(3, "c", "")))
	s.apply(session, &backend.Batch{AfterID: 3, LastRev: 4, Sweep: []int64{2}})
	for id, want := range map[int64]int64{0: 1, 1: 1, 2: 3, 3: 3, 4: 0} {
		found, revision, ok, err := session.Next(s.ctx, id)
		s.must(err)
		if ok != (want != 0) || ok && (found != want || revision != want+1) {
			s.Errorf("next of %d is %d at revision %d (found: %t)", id, found, revision, ok)
		}
	}
}

func valuePositions(s *store) {
	session := s.session()
	batch := &backend.Batch{}
	var ids []int64
	for id := int64(1); id <= 2500; id++ {
		v := put(id, fmt.Sprintf("key %d", id), fmt.Sprintf("value %d", id))
		batch.Versions, batch.LastRev = append(batch.Versions, v), v.Rev
		ids = append(ids, id)
	}
	s.apply(session, batch)
	slices.Reverse(ids)
	ids = append(ids, 7, 7)
	for position, value := range s.values(session, ids...) {
		equal(s, "value", string(value), fmt.Sprintf("value %d", ids[position]))
	}
	equal(s, "values of nothing", len(s.values(session)), 0)
	var missing *backend.Missing
	err := session.Values(s.ctx, []int64{1, 9999}, func(int, []byte) {})
	if !errors.As(err, &missing) || missing.ID != 9999 {
		s.Errorf("a version that is not stored: %v", err)
	}
}
