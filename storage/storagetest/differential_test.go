package storagetest_test

import (
	"testing"

	"github.com/taskctl-dev/taskctl/storage/storagetest"
)

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

// TestDifferentialFindsNoDifferenceBetweenTwoEtcds shows that what the
// differential test compares is determined: etcd against itself passes.
func TestDifferentialFindsNoDifferenceBetweenTwoEtcds(t *testing.T) {
	storagetest.Differential(t, storagetest.Seed(t), 3000, etcdTarget(t, "etcd"), etcdTarget(t, "other"))
}
