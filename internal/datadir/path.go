package datadir

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
)

var validName = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

// CheckName refuses a name that is not [a-z0-9-]{1,40}: it becomes part of
// paths and of kubeconfig contexts.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("the name %q is not valid: 1 to 40 of a-z, 0-9 and -", name)
	}
	return nil
}

// Root is the folder that holds the data folders of this user's appliances:
// $XDG_STATE_HOME/taskctl, else ~/.local/state/taskctl. Where HOME is unset
// the home folder comes from the user database.
func Root(getenv func(string) string) (string, error) {
	// The XDG base directory specification: relative paths are to be ignored.
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "taskctl"), nil
	}
	home := getenv("HOME")
	if !filepath.IsAbs(home) {
		current, err := user.Current()
		if err != nil || !filepath.IsAbs(current.HomeDir) {
			return "", errors.New("no home folder: HOME is not set and this user has none; choose a data folder with --data-dir")
		}
		home = current.HomeDir
	}
	return filepath.Join(home, ".local", "state", "taskctl"), nil
}

// Names lists the appliances that have a data folder below root, sorted.
func Names(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for appliances: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() && CheckName(entry.Name()) == nil {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}
