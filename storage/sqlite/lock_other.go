//go:build !unix

package sqlite

import (
	"errors"
	"os"
)

func lockFile(string) (*os.File, error) {
	return nil, errors.New("SQLite files cannot be kept from a second process on this operating system; use PostgreSQL or MySQL")
}
