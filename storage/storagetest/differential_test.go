package storagetest_test

import (
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/server"
	"github.com/taskctl-dev/taskctl/storage/storagetest"
)

// storeTarget is our store over a database, restarted at random moments.
func storeTarget(t *testing.T, name, spec string) storagetest.Target {
	dir := t.TempDir()
	url := "http://127.0.0.1:0"
	return storagetest.Target{
		Name:     name,
		HashKV:   true,
		Restarts: true,
		Start: func(tb testing.TB) (string, func()) {
			store, err := storage.Open(tb.Context(), storage.Config{Spec: spec, DataDir: dir})
			if err != nil {
				tb.Fatal(err)
			}
			address, stop := storagetest.Serve(tb, store, server.Options{ProgressNotifyInterval: time.Second}, url)
			url = "http://" + address // the same one after a restart
			return url, func() {
				stop()
				if err := store.Close(); err != nil {
					tb.Errorf("close the store: %v", err)
				}
			}
		},
	}
}

// TestSQLiteAnswersAsEtcdDoes compares every answer, revision and event.
func TestSQLiteAnswersAsEtcdDoes(t *testing.T) {
	storagetest.Differential(t, storagetest.Seed(t), 3000, etcdTarget(t, "etcd"), storeTarget(t, "sqlite", "sqlite"))
}

// TestARoutedEtcdAnswersAsEtcdDoes does the same for a store in an etcd.
func TestARoutedEtcdAnswersAsEtcdDoes(t *testing.T) {
	endpoint, stop := storagetest.StartEtcd(t, t.TempDir())
	t.Cleanup(stop)
	storagetest.Differential(t, storagetest.Seed(t), 800, etcdTarget(t, "etcd"), storeTarget(t, "routed", endpoint))
}

// etcdTarget is a real etcd over a folder of its own.
func etcdTarget(t *testing.T, name string) storagetest.Target {
	dir := t.TempDir()
	return storagetest.Target{
		Name:   name,
		HashKV: true,
		Start: func(tb testing.TB) (string, func()) {
			return storagetest.StartEtcd(tb, dir)
		},
	}
}

// TestServersAnswerAsEtcdDoes does the same on database servers.
func TestServersAnswerAsEtcdDoes(t *testing.T) {
	for name, variable := range map[string]string{
		"postgres": storagetest.PostgresVariable,
		"mysql":    storagetest.MySQLVariable,
	} {
		t.Run(name, func(t *testing.T) {
			dsn := storagetest.ServerDSN(t, variable)
			target := storeTarget(t, name, storagetest.EmptyDatabase(t, dsn))
			storagetest.Differential(t, storagetest.Seed(t), 1500, etcdTarget(t, "etcd"), target)
		})
	}
}

// TestDifferentialFindsNoDifferenceBetweenTwoEtcds shows that what the
// differential test compares is determined: etcd against itself passes.
func TestDifferentialFindsNoDifferenceBetweenTwoEtcds(t *testing.T) {
	storagetest.Differential(t, storagetest.Seed(t), 500, etcdTarget(t, "etcd"), etcdTarget(t, "other"))
}
