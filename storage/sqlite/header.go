package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// applicationID marks a file as ours in SQLite's header ("task").
const applicationID = 0x7461736b

// checkHeader reads the first bytes of an existing file and refuses one that
// is not ours or newer than this program, before SQLite has opened it: opening
// can already write (a hot journal, the WAL). A missing or empty file is fine.
// The layout is https://www.sqlite.org/fileformat2.html#the_database_header.
func checkHeader(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	header := make([]byte, 100)
	n, err := io.ReadFull(file, header)
	if n == 0 && err == io.EOF {
		return nil
	}
	if err != nil && err != io.ErrUnexpectedEOF {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if n < len(header) || string(header[:16]) != "SQLite format 3\x00" {
		return fmt.Errorf("%s is not a SQLite database; choose another file", path)
	}
	return checkOurs(path, int64(binary.BigEndian.Uint32(header[68:])), int64(binary.BigEndian.Uint32(header[60:])))
}

func checkOurs(path string, application, version int64) error {
	if application != applicationID {
		return fmt.Errorf("%s is a SQLite database of another program; choose another file", path)
	}
	if version > schemaVersion {
		return fmt.Errorf("%s has schema version %d, this program knows up to %d; use a newer taskctl", path, version, schemaVersion)
	}
	return nil
}
