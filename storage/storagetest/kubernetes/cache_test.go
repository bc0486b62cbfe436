package kubernetes

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// onCache is a test of what only the watch cache does, in front of the store.
func onCache(run func(context.Context, *testing.T, storage.Interface)) suiteTest {
	return onStore(func(t *testing.T, f *fixture) {
		watchCache, err := cacher.NewCacherFromConfig(cacher.Config{
			Storage:             f.store,
			Versioner:           storage.APIObjectVersioner{},
			GroupResource:       pods,
			EventsHistoryWindow: cacher.DefaultEventFreshDuration,
			ResourcePrefix:      "/pods/",
			KeyFunc:             podKey,
			GetAttrsFunc:        podAttributes,
			NewFunc:             newPod,
			NewListFunc:         newPodList,
			Indexers:            &cache.Indexers{},
			Codec:               f.codec,
			Clock:               clock.RealClock{},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(watchCache.Stop)
		if err := watchCache.Wait(f.ctx); err != nil {
			t.Fatal(err)
		}
		delegator := cacher.NewCacheDelegator(watchCache, f.store)
		t.Cleanup(delegator.Stop)
		run(f.ctx, t, delegator)
	})
}

func podKey(object runtime.Object) (string, error) {
	pod, ok := object.(*example.Pod)
	if !ok {
		return "", fmt.Errorf("%T is no pod", object)
	}
	return fmt.Sprintf("/pods/%s/%s", pod.Namespace, pod.Name), nil
}

func podAttributes(object runtime.Object) (labels.Set, fields.Set, error) {
	pod, ok := object.(*example.Pod)
	if !ok {
		return nil, nil, fmt.Errorf("%T is no pod", object)
	}
	return pod.Labels, fields.Set{"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "spec.nodeName": pod.Spec.NodeName}, nil
}
