package datadir

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// maxSocketPath is how many bytes a unix socket's path may have: sun_path has
// 108, the last one is 0 (unix(7)).
const maxSocketPath = 107

const (
	etcdSocket    = "etcd.sock"
	memberSocket  = "member.sock"
	controlSocket = "control.sock"
)

// EtcdSocket is the path of the store's socket.
func (f *Folder) EtcdSocket() string { return f.State().EtcdSocket() }

// EtcdSocket is the path of the store's socket.
func (s State) EtcdSocket() string { return filepath.Join(s.SocketDir, etcdSocket) }

// MemberSocket is the path of the embedded etcd's own socket, where the store
// is in front of it.
func (f *Folder) MemberSocket() string { return filepath.Join(f.State().SocketDir, memberSocket) }

// ControlSocket is the path of the control socket.
func (f *Folder) ControlSocket() string { return f.State().ControlSocket() }

// ControlSocket is the path of the control socket.
func (s State) ControlSocket() string { return filepath.Join(s.SocketDir, controlSocket) }

// prepareSockets chooses the sockets' folder and clears it of what a killed
// process left. The lock is held, so nobody listens there.
func (f *Folder) prepareSockets() error {
	dir := filepath.Join(f.Path, "run")
	if len(filepath.Join(dir, controlSocket)) > maxSocketPath {
		short, err := shortSocketDir(f.Path)
		if err != nil {
			return err
		}
		dir = short
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return notUsable(f.Path, err)
	}
	for _, name := range []string{etcdSocket, memberSocket, controlSocket} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return notUsable(f.Path, err)
		}
	}
	f.state.SocketDir = dir
	return nil
}

// shortSocketDir makes a folder of this user only, whose name follows from the
// data folder's path.
func shortSocketDir(path string) (string, error) {
	sum := sha256.Sum256([]byte(path))
	name := fmt.Sprintf("taskctl-%d-%s", os.Geteuid(), hex.EncodeToString(sum[:6]))
	for _, parent := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"} {
		dir := filepath.Join(parent, name)
		if parent == "" || len(filepath.Join(dir, controlSocket)) > maxSocketPath {
			continue
		}
		if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
			continue
		}
		// In a shared folder like /tmp somebody else may have made it first.
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
			continue
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			continue
		}
		return dir, nil
	}
	return "", fmt.Errorf("the path of the data folder %s is too long for sockets (%d bytes), and no short folder could be made below %s: choose a shorter one with --data-dir, or set TMPDIR",
		path, maxSocketPath, os.TempDir())
}

// removeSockets deletes the sockets, and their folder if it is outside of the
// data folder. What cannot be deleted is cleared by the next Open.
func (f *Folder) removeSockets() {
	dir := f.State().SocketDir
	if dir == "" {
		return
	}
	for _, name := range []string{etcdSocket, memberSocket, controlSocket} {
		os.Remove(filepath.Join(dir, name))
	}
	// A node has the folder mounted, and keeps the one that it was made with.
	if filepath.Dir(dir) != f.Path && f.State().Node == nil {
		os.Remove(dir)
	}
}
