package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// Owner is what the meta row says about ownership.
type Owner struct {
	Identity string        // an encoded Identity; empty: nobody
	Beats    int64         // raised whenever the owner takes over or renews
	Term     time.Duration // how long the owner may answer after its last beat
}

// Ownership is a database's side of a takeover.
type Ownership interface {
	// ReadOwner reads the meta row as committed.
	ReadOwner(ctx context.Context) (Owner, error)
	// Replace raises the epoch and the beats and enters the caller as owner,
	// in one committed transaction and only if identity and beats are still
	// those of seen; otherwise it returns false. It ends what is left of
	// sessions that stand in its way.
	Replace(ctx context.Context, seen Owner) (bool, error)
}

// looks is how often a foreign owner is looked at during its term. An owner
// beats three times a term.
const looks = 8

// TakeOver makes self the owner.
//
// It compares no clocks. An owner stops answering one term after the start of
// its last beat, by its own monotonic clock; so whoever has seen the same beat
// for a whole term, by another monotonic clock, knows that the owner is silent.
// It need not wait for an owner that gave the database back, that is self, or
// whose process has provably ended.
//
// An owner that beats meanwhile lives: the error then wraps backend.ErrOwned,
// as it does when ctx ends first.
func TakeOver(ctx context.Context, db Ownership, self Identity) error {
	for {
		seen, err := db.ReadOwner(ctx)
		if err != nil {
			return err
		}
		if !mayReplaceAtOnce(seen, self) {
			gone, err := waitOut(ctx, db, seen)
			if err != nil {
				return err
			}
			if !gone {
				continue
			}
		}
		replaced, err := db.Replace(ctx, seen)
		if replaced || err != nil {
			return err
		}
	}
}

func mayReplaceAtOnce(seen Owner, self Identity) bool {
	if seen.Identity == "" {
		return true
	}
	owner, err := decodeIdentity(seen.Identity)
	if err != nil {
		return false // of a newer program, perhaps: wait its term out
	}
	return owner.Instance == self.Instance || owner.provablyGone()
}

// waitOut returns true when the owner was silent for its term, and false when
// the row is somebody else's or nobody's by now.
func waitOut(ctx context.Context, db Ownership, seen Owner) (gone bool, err error) {
	until := time.Now().Add(seen.Term)
	ticker := time.NewTicker(max(seen.Term/looks, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false, owned(seen, ctx.Err())
		}
		silent := time.Now().After(until)
		now, err := db.ReadOwner(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return false, owned(seen, ctx.Err())
		case err != nil:
			return false, err
		case now.Identity != seen.Identity:
			return false, nil
		case now.Beats != seen.Beats:
			return false, owned(seen, errors.New("it renewed its ownership just now"))
		case silent:
			return true, nil
		}
	}
}

func owned(by Owner, why error) error {
	who := "an unknown process"
	if owner, err := decodeIdentity(by.Identity); err == nil {
		who = owner.String()
	}
	return fmt.Errorf("%w: %s (%w); stop that one first, or use another database", backend.ErrOwned, who, why)
}
