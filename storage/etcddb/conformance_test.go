package etcddb_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/backend/backendtest"
	"github.com/taskctl-dev/taskctl/storage/etcddb"
	"github.com/taskctl-dev/taskctl/storage/storagetest"
	"github.com/taskctl-dev/taskctl/test/etcdserver"
)

func TestMain(m *testing.M) {
	if etcdserver.Child() {
		return
	}
	goleak.VerifyTestMain(m)
}

// term is short, so that tests which wait it out are quick.
const term = time.Second

// newEtcd starts an empty etcd that ends with the test.
func newEtcd(t *testing.T) (endpoint string) {
	t.Helper()
	endpoint, stop := storagetest.StartEtcd(t, t.TempDir())
	t.Cleanup(stop)
	return endpoint
}

func TestConformance(t *testing.T) {
	backendtest.Run(t, backendtest.Implementation{New: func(t *testing.T) func(context.Context) (backend.Database, error) {
		endpoint := newEtcd(t)
		return func(ctx context.Context) (backend.Database, error) {
			return etcddb.Open(ctx, etcddb.Config{Endpoints: []string{endpoint}, Term: term})
		}
	}})
}
