package kubernetes

import (
	"os"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/server"
	"github.com/taskctl-dev/taskctl/storage/storagetest"
)

// backend starts an endpoint over an empty store.
type backend struct {
	name  string
	start func(t *testing.T, progressInterval time.Duration) (endpoint string)
}

// backends are those that can be tested here, and a real etcd, which shows that
// the suite is set up as it wants to be.
func backends(t *testing.T) []backend {
	t.Helper()
	all := []backend{
		{"etcd", startEtcd},
		{"sqlite", startStore(func(*testing.T) string { return "sqlite" })},
	}
	for name, variable := range map[string]string{
		"postgres": "TASKCTL_TEST_POSTGRES",
		"mysql":    "TASKCTL_TEST_MYSQL",
	} {
		if dsn := os.Getenv(variable); dsn != "" {
			all = append(all, backend{name, startStore(func(t *testing.T) string {
				return storagetest.EmptyDatabase(t, dsn)
			})})
		} else {
			t.Logf("%s is not tested: %s is not set", name, variable)
		}
	}
	return all
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
