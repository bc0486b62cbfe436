package etcd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNoPortIsOpen(t *testing.T) {
	server := newServer(t)
	running := start(t, server)
	defer running.stop(t)
	sockets := map[string]bool{} // inodes of this process's sockets
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", entry.Name()))
		if err == nil && strings.HasPrefix(target, "socket:[") {
			sockets[strings.Trim(target, "socket:[]")] = true
		}
	}
	if len(sockets) == 0 {
		t.Fatal("this process has no sockets at all")
	}
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		content, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(content), "\n") {
			// sl local_address rem_address st … uid timeout inode
			if fields := strings.Fields(line); len(fields) > 9 && sockets[fields[9]] {
				t.Errorf("a TCP socket is open: %s", line)
			}
		}
	}
}
