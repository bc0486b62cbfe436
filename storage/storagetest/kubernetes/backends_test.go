package kubernetes

import (
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/storage/storagetest"
)

// backend starts an endpoint over an empty store.
type backend struct {
	name  string
	start func(t *testing.T, progressInterval time.Duration) (endpoint string)
}

func backends(t *testing.T) []backend {
	return []backend{{"etcd", func(t *testing.T, interval time.Duration) string {
		endpoint, stop := storagetest.StartEtcd(t, t.TempDir(), storagetest.WithProgressInterval(interval))
		t.Cleanup(stop)
		return endpoint
	}}}
}
