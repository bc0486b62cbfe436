package kubernetes

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	etcdkubernetes "go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/utils/clock"
)

// valuePrefix is what the suite's transformer puts before each stored object.
const valuePrefix = "test!"

var pods = schema.GroupResource{Resource: "pods"}

// fixture is an etcd3 store on an empty endpoint, made as etcd3's own tests
// make it (k8s.io/apiserver/pkg/storage/etcd3/store_test.go, testSetup).
type fixture struct {
	ctx         context.Context
	store       storage.Interface
	client      *etcdkubernetes.Client
	codec       runtime.Codec
	transformer *swappedTransformer
}

// fixtureOptions are what some tests need to be different.
type fixtureOptions struct {
	codec            runtime.Codec
	transformer      value.Transformer
	progressInterval time.Duration
}

func newFixture(t *testing.T, backend backend, options fixtureOptions) *fixture {
	t.Helper()
	if options.codec == nil {
		options.codec = newCodec(t)
	}
	if options.transformer == nil {
		options.transformer = storagetesting.NewPrefixTransformer([]byte(valuePrefix), false)
	}
	f := &fixture{
		ctx:         t.Context(),
		client:      connect(t, backend.start(t, options.progressInterval)),
		codec:       options.codec,
		transformer: newSwappedTransformer(options.transformer),
	}
	compactor := etcd3.NewCompactor(f.client.Client, 0, clock.RealClock{}, nil)
	t.Cleanup(compactor.Stop)
	leases := etcd3.NewDefaultLeaseManagerConfig()
	leases.ReuseDurationSeconds = 1 // the suite waits 30 s at most
	versioner := storage.APIObjectVersioner{}
	store, err := etcd3.New(f.client, compactor, f.codec, newPod, newPodList, "", "/pods/", pods,
		f.transformer, leases, etcd3.NewDefaultDecoder(f.codec, versioner), versioner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	f.store = store
	return f
}

func newPod() runtime.Object     { return &example.Pod{} }
func newPodList() runtime.Object { return &example.PodList{} }

func newCodec(t *testing.T) runtime.Codec {
	t.Helper()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	for _, add := range []func(*runtime.Scheme) error{example.AddToScheme, examplev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return apitesting.TestCodec(serializer.NewCodecFactory(scheme), examplev1.SchemeGroupVersion)
}

// connect makes the client that kube-apiserver uses, with the suite's
// recorders around it.
func connect(t *testing.T, endpoint string) *etcdkubernetes.Client {
	t.Helper()
	client, err := etcdkubernetes.New(clientv3.Config{
		Endpoints: []string{endpoint}, DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // watches that a test left open end with it
	recorder := storagetesting.NewKubernetesRecorder(client.Kubernetes)
	client.KV = storagetesting.NewKVRecorder(client.KV, recorder)
	client.Kubernetes = recorder
	return client
}

// swappedTransformer is a transformer that a test replaces under a store.
type swappedTransformer struct {
	current atomic.Pointer[value.Transformer]
}

func newSwappedTransformer(transformer value.Transformer) *swappedTransformer {
	s := &swappedTransformer{}
	s.current.Store(&transformer)
	return s
}

func (s *swappedTransformer) get() value.Transformer { return *s.current.Load() }

// set replaces the transformer; the returned function puts the old one back.
func (s *swappedTransformer) set(transformer value.Transformer) (revert func()) {
	old := s.current.Swap(&transformer)
	return func() { s.current.Store(old) }
}

func (s *swappedTransformer) TransformFromStorage(ctx context.Context, data []byte, at value.Context) ([]byte, bool, error) {
	return s.get().TransformFromStorage(ctx, data, at)
}

func (s *swappedTransformer) TransformToStorage(ctx context.Context, data []byte, at value.Context) ([]byte, error) {
	return s.get().TransformToStorage(ctx, data, at)
}

// prefixStore is the suite's InterfaceWithPrefixTransformer.
type prefixStore struct {
	storage.Interface
	transformer *swappedTransformer
}

func (s prefixStore) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	changed := *s.transformer.get().(*storagetesting.PrefixTransformer)
	return s.transformer.set(modify(&changed))
}

// overrideStore is the suite's InterfaceWithTransformerOverride.
type overrideStore struct {
	storage.Interface
	transformer *swappedTransformer
}

func (s overrideStore) UpdateTransformer(modify storagetesting.TransformerModifier) func() {
	return s.transformer.set(modify(s.transformer.get()))
}

var errSynthetic = errors.New("synthetic error")

// failingTransformer fails to read while it is told to.
type failingTransformer struct {
	value.Transformer
	failing atomic.Bool
}

func (f *failingTransformer) TransformFromStorage(ctx context.Context, data []byte, at value.Context) ([]byte, bool, error) {
	if f.failing.Load() {
		return nil, false, errSynthetic
	}
	return f.Transformer.TransformFromStorage(ctx, data, at)
}

// failingCodec fails to decode while it is told to.
type failingCodec struct {
	runtime.Codec
	failing atomic.Bool
}

func (f *failingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if f.failing.Load() {
		return nil, nil, errSynthetic
	}
	return f.Codec.Decode(data, defaults, into)
}

// corruptError is the error that etcd3 gives an object that can't be read; its
// type is private there.
func corruptError() error {
	failing := &failingTransformer{Transformer: storagetesting.NewPrefixTransformer(nil, false)}
	failing.failing.Store(true)
	_, _, err := etcd3.WithCorruptObjErrorHandlingTransformer(failing).
		TransformFromStorage(context.Background(), nil, value.DefaultContext(nil))
	return err
}
