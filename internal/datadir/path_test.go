package datadir

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRoot(t *testing.T) {
	for name, test := range map[string]struct {
		env  map[string]string
		want string
	}{
		"XDG_STATE_HOME":            {map[string]string{"XDG_STATE_HOME": "/state", "HOME": "/home/a"}, "/state/taskctl"},
		"HOME":                      {map[string]string{"HOME": "/home/a"}, "/home/a/.local/state/taskctl"},
		"a relative one is ignored": {map[string]string{"XDG_STATE_HOME": "state", "HOME": "/home/a"}, "/home/a/.local/state/taskctl"},
		"an empty one is as unset":  {map[string]string{"XDG_STATE_HOME": "", "HOME": "/home/a"}, "/home/a/.local/state/taskctl"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Root(func(key string) string { return test.env[key] })
			if err != nil || got != test.want {
				t.Errorf("%q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestRootWithoutHomeIsAbsoluteOrSaysWhatToDo(t *testing.T) {
	got, err := Root(func(string) string { return "" })
	if err == nil && !filepath.IsAbs(got) || err != nil && !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"taskctl": true, "a-1": true, strings.Repeat("a", 40): true,
		"": false, "A": false, "a_b": false, "..": false, strings.Repeat("a", 41): false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
	root := t.TempDir()
	for _, name := range []string{"b", "a", ".a.deleting"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "file"), "")
	names, err := Names(root)
	if err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("%v, %v", names, err)
	}
	if names, err := Names(filepath.Join(root, "nothing")); err != nil || len(names) != 0 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestSocketsOfADeepFolder(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", "/tmp")
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 60), strings.Repeat("e", 60))
	folder := open(t, deep)
	socket := folder.ControlSocket()
	if len(socket) > maxSocketPath || strings.HasPrefix(socket, deep) {
		t.Fatalf("the socket's path is %q (%d bytes)", socket, len(socket))
	}
	info, err := os.Stat(filepath.Dir(socket))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its folder: %v, %v", info, err)
	}
	if recorded, err := ReadState(deep); err != nil || recorded.ControlSocket() != socket {
		t.Errorf("state.json has %q, %v", recorded.ControlSocket(), err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(socket)); !os.IsNotExist(err) {
		t.Errorf("the short folder is left behind: %v", err)
	}
}

func TestStaleSocketsAreCleared(t *testing.T) {
	path := t.TempDir()
	if err := os.Mkdir(filepath.Join(path, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "run", "etcd.sock"), "")
	write(t, filepath.Join(path, "lock"), "4711\n")
	folder := open(t, path)
	if _, err := os.Stat(folder.EtcdSocket()); !os.IsNotExist(err) {
		t.Errorf("the stale socket is still there: %v", err)
	}
}
