package kubernetes

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// The functions that the suite asks its caller for. They are etcd3's own, from
// store_test.go, in what they check.

// storedObject checks an object as it is stored.
func (f *fixture) storedObject(ctx context.Context, t *testing.T, key string) {
	t.Helper()
	response, err := f.client.KV.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if len(response.Kvs) == 0 {
		t.Fatalf("nothing is stored under %s", key)
	}
	decoded, err := runtime.Decode(f.codec, response.Kvs[0].Value[len(valuePrefix):])
	if err != nil {
		t.Fatalf("decode what is stored under %s: %v", key, err)
	}
	if pod := decoded.(*example.Pod); pod.ResourceVersion != "" {
		t.Errorf("the stored object has resourceVersion %q", pod.ResourceVersion)
	}
}

// compact compacts at a resource version and waits until the store noticed it.
func (f *fixture) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	revision, err := storage.APIObjectVersioner{}.ParseResourceVersion(resourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	version, _, _, err := etcd3.Compact(ctx, f.client.Client, 0, int64(revision))
	if err != nil {
		_, _, _, err = etcd3.Compact(ctx, f.client.Client, version, int64(revision))
	}
	if err != nil {
		t.Fatal(err)
	}
	if !utilfeature.DefaultFeatureGate.Enabled(features.ListFromCacheSnapshot) {
		return
	}
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return f.store.CompactRevision() == int64(revision), nil
	})
	if err != nil {
		t.Fatalf("the store did not notice the compaction at %d: %v", revision, err)
	}
}

// increaseRevision makes a write that the store does not look at.
func (f *fixture) increaseRevision(ctx context.Context, t *testing.T) int64 {
	t.Helper()
	response, err := f.client.KV.Put(ctx, "increaseRV", "ok")
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

// storageCalls counts the reads and the pages of a list: pages double up to
// maxPage as long as too few objects match.
func (f *fixture) storageCalls(t *testing.T, pageSize, processed uint64) {
	t.Helper()
	const maxPage = 10000
	if reads := f.transformer.get().(*storagetesting.PrefixTransformer).GetReadsAndReset(); reads != processed {
		t.Errorf("%d objects were read, want %d", reads, processed)
	}
	calls := uint64(1)
	if pageSize != 0 {
		page := pageSize
		for sum := uint64(1); sum < processed; calls++ {
			page = min(page*2, maxPage)
			sum += page
		}
	}
	recorder := f.client.KV.(*storagetesting.KVRecorder)
	if reads := recorder.GetReadsAndReset() + recorder.GetStreamReadsAndReset(); reads != calls {
		t.Fatalf("%d ranges were asked for, want %d", reads, calls)
	}
}

// podKeys lists the stored keys, for the estimation of sizes.
func (f *fixture) podKeys(ctx context.Context) ([]string, error) {
	response, err := f.client.KV.Get(ctx, "/pods/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	keys := make([]string, 0, len(response.Kvs))
	for _, kv := range response.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys, nil
}
