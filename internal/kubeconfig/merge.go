package kubeconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/taskctl-dev/taskctl/internal/datadir"
)

// Check says whether an entry of that name and owner could be merged into the
// file: before an appliance is started for nothing.
func Check(file, name, owner string) error {
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return advice(file, err)
	}
	document, err := decode(content)
	if err != nil {
		return advice(file, err)
	}
	return checkOwner(document, file, name, owner)
}

// Merge puts the entry into the file, which is made if it is missing, and
// makes it the current context if switchContext says so. former is the
// current context from before, "" if there was none or ours was it already;
// created says that the file was made.
func Merge(ctx context.Context, file string, entry Entry, switchContext bool) (former string, created bool, err error) {
	err = edit(ctx, file, true, func(document *yaml.Node, isNew bool) error {
		if err := checkOwner(document, file, entry.Name, entry.Owner); err != nil {
			return err
		}
		created = isNew
		put(document, entry)
		if current := scalar(document, "current-context"); switchContext && current != entry.Name {
			former = current
			setScalar(document, "current-context", entry.Name)
		}
		return nil
	})
	return former, created, err
}

// Remove takes the entries of that name and owner out of the file, restores
// the former current context if ours is still set, and deletes a file that was
// created for them and has nothing else in it. A file or entries that are gone
// already are no error.
func Remove(ctx context.Context, file, name, owner, former string, created bool) error {
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return edit(ctx, file, false, func(document *yaml.Node, _ bool) error {
		take(document, name, owner, former)
		if created && isEmpty(document) {
			return errDelete
		}
		return nil
	})
}

// take drops the entries of that name and owner. If theirs is the current
// context, the former one becomes it again, unless it is gone.
func take(document *yaml.Node, name, owner, former string) {
	if ownerOf(get(find(document, "contexts", name), "context")) == owner {
		drop(document, "contexts", name)
		if scalar(document, "current-context") == name {
			if find(document, "contexts", former) == nil {
				former = ""
			}
			setScalar(document, "current-context", former)
		}
	}
	if ownerOf(get(find(document, "clusters", name), "cluster")) == owner {
		drop(document, "clusters", name)
	}
	if ownerOf(get(find(document, "users", name), "user")) == owner {
		drop(document, "users", name)
	}
}

var errDelete = errors.New("delete the file")

// edit changes the file under its lock, by an atomic rename. A symbolic link
// stays one: what it points to is replaced.
func edit(ctx context.Context, file string, create bool, change func(document *yaml.Node, isNew bool) error) error {
	if create {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return advice(file, err)
		}
	}
	release, err := lock(ctx, file)
	if err != nil {
		return advice(file, err)
	}
	defer release()
	target, err := filepath.EvalSymlinks(file)
	if errors.Is(err, os.ErrNotExist) && create {
		target, err = danglingTarget(file)
	}
	if err != nil {
		return advice(file, err)
	}
	content, err := os.ReadFile(target)
	isNew := errors.Is(err, os.ErrNotExist)
	if err != nil && !isNew {
		return advice(file, err)
	}
	document, err := decode(content)
	if err != nil {
		return advice(file, err)
	}
	before, err := encode(document)
	if err != nil {
		return advice(file, err)
	}
	err = change(document, isNew)
	if errors.Is(err, errDelete) {
		return os.Remove(target)
	}
	if err != nil {
		return err
	}
	changed, err := encode(document)
	if err != nil {
		return advice(file, err)
	}
	if bytes.Equal(changed, before) {
		return nil // and the user's layout stays
	}
	if err := datadir.WriteFile(target, changed, 0o600); err != nil {
		return advice(file, err)
	}
	return nil
}

// danglingTarget is where a file that does not exist is to be made: itself, or
// where the link that it is points to.
func danglingTarget(file string) (string, error) {
	target, err := os.Readlink(file)
	if err != nil {
		return file, nil // no link: the file itself is missing
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(file), target)
	}
	return target, nil
}

func advice(file string, err error) error {
	return fmt.Errorf("the kubeconfig %s can't be used: %w; mend it, or use another file with --kubeconfig", file, err)
}

// checkOwner refuses to overwrite entries of our name that are not ours.
func checkOwner(document *yaml.Node, file, name, owner string) error {
	for list, key := range map[string]string{"contexts": "context", "clusters": "cluster", "users": "user"} {
		element := find(document, list, name)
		if element == nil {
			continue
		}
		switch other := ownerOf(get(element, key)); {
		case other == owner:
		case other == "":
			return fmt.Errorf("the kubeconfig %s has a %s %q that taskctl did not make: rename it, choose another --name, or use another file with --kubeconfig", file, key, name)
		default:
			if info, err := datadir.Inspect(other); err == nil && info.Held {
				return fmt.Errorf("the %s %q in %s belongs to the running appliance in %s: choose another --name, or use another file with --kubeconfig", key, name, file, other)
			}
		}
	}
	return nil
}

func isEmpty(document *yaml.Node) bool {
	mapping := mappingOf(document)
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i].Value, mapping.Content[i+1]
		switch {
		case key == "apiVersion", key == "kind", key == "preferences" && len(value.Content) == 0:
		case value.Kind == yaml.ScalarNode && value.Value == "", len(value.Content) == 0 && value.Kind != yaml.ScalarNode:
		default:
			return false
		}
	}
	return true
}
