package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"os"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

const (
	// vacuumPages is how many free pages one call of Maintain gives back.
	vacuumPages = 64
	// keepFreePages are left in the file for the next writes.
	keepFreePages = 1024
)

// Size counts the file's pages and the WAL.
func (s *session) Size(ctx context.Context) (backend.Size, error) {
	var pages, free, pageSize int64
	err := s.read(ctx, func(r *reader) error {
		for statement, target := range map[*statement]*int64{r.pages: &pages, r.free: &free, r.pageSize: &pageSize} {
			err := every(ctx, statement, func(row []driver.Value) error { return integers(row, target) })
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return backend.Size{}, fmt.Errorf("measure %s: %w", s.path, err)
	}
	size := backend.Size{Allocated: pages * pageSize, InUse: (pages - free) * pageSize}
	if wal, err := os.Stat(s.path + "-wal"); err == nil {
		size.Allocated += wal.Size()
	}
	return size, nil
}

// Maintain restarts a WAL that the background checkpoints could not keep
// small, and gives some of the free pages back to the file system.
func (s *session) Maintain(context.Context) (bool, error) {
	if s.checkpoint.overdue() {
		return false, s.checkpoint.tryTruncate(s.writer)
	}
	free, err := s.writer.integers("PRAGMA freelist_count")
	if err != nil {
		return false, err
	}
	if free[0] > keepFreePages {
		s.vacuumed = true
		// SQLite gives back one page for each row of the answer.
		return true, s.sql.vacuum.each(func([]driver.Value) (bool, error) { return true, nil })
	}
	if s.vacuumed {
		s.vacuumed = false
		s.checkpoint.nudge() // the file gets shorter by a checkpoint only
	}
	return false, nil
}

// Defragment rewrites the file without unused space.
func (s *session) Defragment(context.Context) error {
	if err := s.writer.exec("VACUUM"); err != nil {
		return fmt.Errorf("vacuum %s: %w", s.path, err)
	}
	if err := s.checkpoint.truncate(s.writer); err != nil {
		return fmt.Errorf("shorten %s after its vacuum: %w", s.path, err)
	}
	return nil
}
