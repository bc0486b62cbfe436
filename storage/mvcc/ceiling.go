package mvcc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Ceiling keeps one number durably.
type Ceiling interface {
	// Load returns the number that was stored last, 0 if none was.
	Load() (int64, error)
	// Store replaces it and returns when the new one is durable.
	Store(revision int64) error
}

const (
	// ceilingStep is how far ahead of need revisions are reserved.
	ceilingStep = 1 << 20
	// ceilingSpare is more than one batch can draw.
	ceilingSpare = 4 * batchJobs
)

// ceilingKeeper reserves revisions for all shards.
type ceilingKeeper struct {
	mu       sync.Mutex
	ceiling  Ceiling
	reserved int64
}

// ensure makes sure that a batch of any backend may draw revisions from next
// on.
func (k *ceilingKeeper) ensure(next int64, shards int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	needed := next + int64(shards)*ceilingSpare
	if needed <= k.reserved {
		return nil
	}
	reserve := needed + ceilingStep
	if err := k.ceiling.Store(reserve); err != nil {
		return fmt.Errorf("reserve revisions: %w", err)
	}
	k.reserved = reserve
	return nil
}

// startCeiling begins to keep the ceiling. If every backend has told its newest
// revision, the sequence goes on without a gap; else it goes on above whatever
// was reserved.
func (s *Store) startCeiling(complete bool) error {
	reserved, err := s.options.Ceiling.Load()
	if err != nil {
		return fmt.Errorf("find out which revisions were handed out: %w", err)
	}
	if !complete {
		if reserved < s.sequencer.now() {
			return errors.New("a backend does not answer, and which revisions were handed out is not known; start with all backends once")
		}
		s.sequencer.start(0, reserved+1, neverCompacted)
	}
	keeper := &ceilingKeeper{ceiling: s.options.Ceiling}
	for _, shard := range s.shards {
		shard.reserve = func() error { return keeper.ensure(s.sequencer.peek(), len(s.shards)) }
	}
	return keeper.ensure(s.sequencer.peek(), len(s.shards))
}

// CeilingFile keeps the number in a small file, replaced as a whole.
type CeilingFile string

// Load reads the file.
func (f CeilingFile) Load() (int64, error) {
	content, err := os.ReadFile(string(f))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	revision, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is damaged: %w", string(f), err)
	}
	return revision, nil
}

// Store writes a new file, syncs it and puts it in the place of the old one.
func (f CeilingFile) Store(revision int64) error {
	file, err := os.CreateTemp(filepath.Dir(string(f)), filepath.Base(string(f))+".*")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, revision)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), string(f))
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	folder, err := os.Open(filepath.Dir(string(f)))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
