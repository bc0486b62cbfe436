package kubernetes

import (
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/server"
	"github.com/taskctl-dev/taskctl/storage/storagetest"
)

// backend starts an endpoint over an empty store.
type backend struct {
	name string
	// server is the variable that names its database server, "" without one.
	server string
	start  func(t *testing.T, progressInterval time.Duration) (endpoint string)
}

// backends are the databases, and a real etcd, which shows that the suite is
// set up as it wants to be.
func backends() []backend {
	return []backend{
		{name: "etcd", start: startEtcd},
		{name: "routed etcd", start: startStore(emptyEtcd)},
		{name: "sqlite", start: startStore(func(*testing.T) string { return "sqlite" })},
		{name: "postgres", server: storagetest.PostgresVariable, start: startStore(onServer(storagetest.PostgresVariable))},
		{name: "mysql", server: storagetest.MySQLVariable, start: startStore(onServer(storagetest.MySQLVariable))},
	}
}

// onServer makes an empty database on the server that a variable names.
func onServer(variable string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		return storagetest.EmptyDatabase(t, storagetest.ServerDSN(t, variable))
	}
}

// emptyEtcd starts an etcd for a store to keep its keys in.
func emptyEtcd(t *testing.T) string {
	t.Helper()
	endpoint, stop := storagetest.StartEtcd(t, t.TempDir())
	t.Cleanup(stop)
	return endpoint
}

func startEtcd(t *testing.T, interval time.Duration) string {
	t.Helper()
	endpoint, stop := storagetest.StartEtcd(t, t.TempDir(), storagetest.WithProgressInterval(interval))
	t.Cleanup(stop)
	return endpoint
}

// startStore serves our store over the database that spec names.
func startStore(spec func(*testing.T) string) func(*testing.T, time.Duration) string {
	return func(t *testing.T, interval time.Duration) string {
		t.Helper()
		store, err := storage.Open(t.Context(), storage.Config{Spec: spec(t), DataDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Errorf("close the store: %v", err)
			}
		})
		address, stop := storagetest.Serve(t, store, server.Options{ProgressNotifyInterval: interval}, "http://127.0.0.1:0")
		t.Cleanup(stop)
		return "http://" + address
	}
}
