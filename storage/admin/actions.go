package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/backup"
	"github.com/taskctl-dev/taskctl/storage/mvcc"
	"github.com/taskctl-dev/taskctl/storage/verify"
)

// BackupLimit is how long a backup may keep a compaction from deleting.
const BackupLimit = 30 * time.Minute

// errTooSlow ends a backup that takes longer.
var errTooSlow = fmt.Errorf("the backup took longer than %s, for which a compaction has waited: write it to a faster disk", BackupLimit)

// Backup writes a backup of the store. program is the version of this program.
func Backup(ctx context.Context, store *storage.Store, to io.Writer, program string) (backup.Summary, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, BackupLimit, errTooSlow)
	defer cancel()
	held, err := store.Hold(ctx)
	if err != nil {
		return backup.Summary{}, fmt.Errorf("hold the store at a revision: %w", err)
	}
	defer held.Release()
	summary, err := backup.Write(ctx, to, backup.OfStore(held), program)
	if errors.Is(err, context.DeadlineExceeded) {
		err = context.Cause(ctx)
	}
	return summary, err
}

// Verify checks the rules of a store that runs.
func Verify(ctx context.Context, store *storage.Store) (verify.Report, error) {
	var report verify.Report
	err := store.Inspect(ctx, func(ctx context.Context, floor int64, backends []mvcc.Inspected) (err error) {
		checked := verify.Store{Route: store.Router.Route, Floor: floor}
		for _, b := range backends {
			checked.Backends = append(checked.Backends, verify.Backend(b))
		}
		report, err = verify.Run(ctx, checked)
		return err
	})
	return report, err
}

// VerifyDatabases checks those of a store that does not run.
func VerifyDatabases(ctx context.Context, databases *storage.Databases) (verify.Report, error) {
	checked := verify.Store{Route: databases.Router.Route}
	for i, b := range databases.Backends {
		state := b.Session.State()
		if i == 0 {
			// The first one keeps the floor; it is stored as a mark, one
			// above.
			checked.Floor = state.Floor - 1
		}
		checked.Backends = append(checked.Backends, verify.Backend{
			Name: b.Name, Session: b.Session, LastID: state.LastID, LastRev: state.LastRev, Mark: state.Floor,
		})
	}
	return verify.Run(ctx, checked)
}
