package storage_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/taskctl-dev/taskctl/storage"
)

func TestSpecsNameTheirFiles(t *testing.T) {
	dir := t.TempDir()
	tests := []struct{ spec, file string }{
		{"sqlite", "store.db"},
		{"sqlite://tasks.db", "tasks.db"},
		{"sqlite://db/deep/tasks.db", "db/deep/tasks.db"},
		{"sqlite://" + filepath.Join(dir, "absolute.db"), "absolute.db"},
		{"sqlite://with%20space.db", "with space.db"},
	}
	for _, test := range tests {
		t.Run(test.spec, func(t *testing.T) {
			store, err := storage.Open(t.Context(), storage.Config{Spec: test.spec, DataDir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dir, test.file)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhatCannotBeAStoreIsRefusedInOneLineAndNotTouched(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte("these are notes, many of them, and not a database\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := storage.Open(t.Context(), storage.Config{Spec: "sqlite://held.db", DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	if _, err := held.Txn(t.Context(), &pb.TxnRequest{}); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, spec, want string }{
		{"an unknown kind", "oracle://x", "use sqlite"},
		{"an empty name", "sqlite://", "names no file"},
		{"a text file", "sqlite://notes.txt", "not a SQLite database"},
		{"a folder that is missing", "sqlite://" + filepath.Join(dir, "..", "missing", "store.db"), "folder"},
		{"a store that is open", "sqlite://held.db", "in use by another process"},
		{"a server that is not there", "postgres://u@127.0.0.1:1/db", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store, err := storage.Open(context.Background(), storage.Config{Spec: test.spec, DataDir: dir})
			if err == nil {
				_ = store.Close()
				t.Fatal("it is opened")
			}
			if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the refusal is %q, want one line with %q", err, test.want)
			}
		})
	}
	if after, err := os.ReadFile(text); err != nil || !strings.HasPrefix(string(after), "these are notes") {
		t.Errorf("the text file has become %q, %v", after, err)
	}
}
