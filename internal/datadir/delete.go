package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// makeFolder makes path and what is missing above it, and says what it made,
// innermost first.
func makeFolder(path string) (made []string, err error) {
	// What a Delete that was cut short left behind.
	if err := os.RemoveAll(deleting(path)); err != nil {
		return nil, err
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) || dir == filepath.Dir(dir) {
			break
		}
		made = append(made, dir)
	}
	// Another appliance's Delete may take a parent away between two steps.
	for range 10 {
		if err = os.MkdirAll(path, 0o700); !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	return made, err
}

// deleting is the name of a folder that is being deleted. It is no valid name
// of an appliance.
func deleting(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".deleting")
}

// Delete deletes the folder and gives it up. Folders above it that Open made
// go too, and so does the root of all data folders, if nothing else is in them.
func (f *Folder) Delete() error {
	f.removeSockets()
	// Whoever opens the path from here on gets a new folder: without the new
	// name their files could be deleted along with ours.
	doomed := deleting(f.Path)
	if err := os.Rename(f.Path, doomed); err != nil {
		doomed = f.Path // a mount point, or a parent that may not be written
	}
	err := os.RemoveAll(doomed)
	if err != nil {
		err = fmt.Errorf("deleting the data folder: %w", err)
	}
	for _, dir := range f.made {
		os.Remove(dir) // fails, as it should, if something is in it
	}
	if root := filepath.Dir(f.Path); filepath.Base(root) == "taskctl" {
		os.Remove(root)
	}
	return errors.Join(err, f.lock.Close())
}

// Abandon gives up a folder in which nothing could be started. One that was
// empty before Open is empty, or gone, again.
func (f *Folder) Abandon() error {
	if !f.fresh {
		return f.Close()
	}
	f.removeSockets()
	for _, name := range []string{"run", "logs", lockFile} {
		os.Remove(filepath.Join(f.Path, name)) // fails if something is in it
	}
	for _, dir := range f.made {
		os.Remove(dir)
	}
	return f.lock.Close()
}
