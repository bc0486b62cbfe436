package backendtest

import (
	"context"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// Implementation is what a backend's test gives to Run.
type Implementation struct {
	// New makes an empty store and returns what opens it, as often as it is
	// called. What New made is removed when t ends.
	New func(t *testing.T) (open func(ctx context.Context) (backend.Database, error))
	// Exclusive says that a store cannot be opened twice at a time.
	Exclusive bool
}

// timeout bounds one test; it is only reached when something hangs.
const timeout = time.Minute

// Run runs every test on a store of its own.
func Run(t *testing.T, implementation Implementation) {
	tests := []struct {
		name string
		run  func(*store)
	}{
		{"an empty store is at revision 1", emptyStore},
		{"every field of a version is read as it was written", everyField},
		{"keys and values are bytes", bytesAsTheyAre},
		{"keys are in the order of their bytes", orderOfKeys},
		{"a range has its first key and not its end", rangeBounds},
		{"a version later than asked for is not seen", newestUpTo},
		{"a key with thousands of versions has one newest", hotKey},
		{"thousands of keys are read whole and in order", manyKeys},
		{"a scan reads versions in order between its bounds", scanBounds},
		{"callbacks may keep what they get", keptSlices},
		{"a callback ends a scan", endedScan},
		{"the first version from an ID on is found", nextVersion},
		{"values come with their positions", valuePositions},
		{"leases are stored, replaced and removed", leases},
		{"a batch without versions moves no revision", withoutVersions},
		{"compaction removes versions and nothing else", sweep},
		{"a batch of ten thousand versions is stored whole", manyVersions},
		{"a batch of many megabytes is stored whole", largeBatch},
		{"a value that is too long is refused alone", tooLong},
		{"a batch that does not follow the last one is refused", wrongLastID},
		{"a session ends when another is acquired", olderSession},
		{"a store that is opened again is as it was", openedAgain},
		{"reads beside writes see every acknowledged batch", readsBesideWrites},
		{"a canceled read fails", canceledRead},
		{"size and housekeeping", housekeeping},
		{"a session can be closed twice and under a read", closing},
	}
	if !implementation.Exclusive {
		tests = append(tests, []struct {
			name string
			run  func(*store)
		}{
			{"a living owner keeps the store", livingOwner},
			{"a silent owner is replaced after its term, and fenced", silentOwner},
			{"an owner that closes its database leaves it at once", leavingOwner},
			{"of two that take over, one wins", contenders},
		}...)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			s := &store{T: t, ctx: ctx, opener: implementation.New(t)}
			defer s.closeAll()
			test.run(s)
		})
	}
}
