package etcd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
)

// firstSegment is the log file that a new member begins with.
const firstSegment = "0000000000000000-0000000000000000.wal"

// clearUnborn removes a member that was killed while it was made. etcd writes
// the log's header first and the entry that makes the member a voter a moment
// later; with a log that ends in between it waits for a leader without end.
// Such a member has committed nothing, so nothing that was acknowledged is in
// it.
func (s *Server) clearUnborn() error {
	member := filepath.Join(s.Dir, "member")
	unborn, err := isUnborn(member)
	if err != nil || !unborn {
		return err
	}
	if err := os.RemoveAll(member); err != nil {
		return fmt.Errorf("remove what an interrupted first start left: %w", err)
	}
	return nil
}

// isUnborn tells whether the member's log holds no committed entry. The first
// state that raft saves has the member's own entry committed.
func isUnborn(member string) (bool, error) {
	snapshots, err := filepath.Glob(filepath.Join(member, "snap", "*.snap"))
	if err != nil || len(snapshots) > 0 {
		return false, err
	}
	segments, err := filepath.Glob(filepath.Join(member, "wal", "*.wal"))
	if err != nil || len(segments) != 1 || filepath.Base(segments[0]) != firstSegment {
		return false, err
	}
	file, err := os.Open(segments[0])
	if err != nil {
		return false, err
	}
	defer file.Close()
	decoder := wal.NewDecoder(fileutil.NewFileReader(file))
	for {
		var record walpb.Record
		switch err := decoder.Decode(&record); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return true, nil // the end, or a record that was cut by the kill
		case err != nil:
			return false, nil // damage is etcd's to report
		}
		if record.GetType() == wal.CrcType {
			decoder.UpdateCRC(record.GetCrc())
		}
		if record.GetType() == wal.StateType && wal.MustUnmarshalState(record.Data).GetCommit() > 0 {
			return false, nil
		}
	}
}
