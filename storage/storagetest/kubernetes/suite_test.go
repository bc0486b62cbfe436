package kubernetes

import (
	"testing"
	"time"

	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage/etcd3"
	etcdfeature "k8s.io/apiserver/pkg/storage/feature"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/taskctl-dev/taskctl/storage/storagetest"
)

// suiteTest runs one function of the suite on an empty store of a backend.
type suiteTest func(t *testing.T, backend backend)

// TestKubernetesStorageSuite runs every function of the suite on every backend.
func TestKubernetesStorageSuite(t *testing.T) {
	tests := suiteTests()
	for _, backend := range backends() {
		t.Run(backend.name, func(t *testing.T) {
			if backend.server != "" {
				storagetest.ServerDSN(t, backend.server) // skips all of it without one
			}
			for _, name := range suiteFunctions(t) {
				test, ok := tests[name]
				if !ok {
					t.Errorf("%s of the suite is not in suiteTests", name)
					continue
				}
				t.Run(name, func(t *testing.T) { test(t, backend) })
			}
		})
	}
}

// onStore is a test that needs the store alone.
func onStore(run func(*testing.T, *fixture)) suiteTest {
	return func(t *testing.T, backend backend) { run(t, newFixture(t, backend, fixtureOptions{})) }
}

// withGate runs a test while a feature gate of Kubernetes is set.
func withGate(gate featuregate.Feature, on bool, test suiteTest) suiteTest {
	return func(t *testing.T, backend backend) {
		featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, gate, on)
		test(t, backend)
	}
}

// bothRanges runs a test with lists by pages and with streamed ones.
func bothRanges(test suiteTest) suiteTest {
	return func(t *testing.T, backend backend) {
		for name, on := range map[string]bool{"pages": false, "stream": true} {
			t.Run(name, func(t *testing.T) {
				old := etcdfeature.DefaultFeatureSupportChecker
				etcdfeature.DefaultFeatureSupportChecker = etcdfeature.NewDefaultFeatureSupportChecker()
				t.Cleanup(func() { etcdfeature.DefaultFeatureSupportChecker = old })
				withGate(features.EtcdRangeStream, on, test)(t, backend)
			})
		}
	}
}

// everySecond is a test that needs progress notifications soon.
func everySecond(run func(*testing.T, *fixture)) suiteTest {
	return func(t *testing.T, backend backend) {
		run(t, newFixture(t, backend, fixtureOptions{progressInterval: time.Second}))
	}
}

// withFailure runs a test once with a transformer and once with a codec that
// the test can make fail.
func withFailure(run func(t *testing.T, f *fixture, setFailing func(bool))) suiteTest {
	return withGate(features.AllowUnsafeMalformedObjectDeletion, true, func(t *testing.T, backend backend) {
		t.Run("transformer", func(t *testing.T) {
			transformer := &failingTransformer{Transformer: storagetesting.NewPrefixTransformer([]byte(valuePrefix), false)}
			run(t, newFixture(t, backend, fixtureOptions{transformer: transformer}), transformer.failing.Store)
		})
		t.Run("codec", func(t *testing.T) {
			codec := &failingCodec{Codec: newCodec(t)}
			run(t, newFixture(t, backend, fixtureOptions{codec: codec}), codec.failing.Store)
		})
	})
}

// corruptible is the store as it is wired where corrupt objects may be deleted.
func (f *fixture) corruptible() overrideStore {
	return overrideStore{etcd3.NewStoreWithUnsafeCorruptObjectDeletion(f.store, pods), f.transformer}
}

func (f *fixture) prefixed() prefixStore { return prefixStore{f.store, f.transformer} }
