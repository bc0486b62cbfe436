package cluster_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"go.uber.org/goleak"

	"github.com/taskctl-dev/taskctl/cluster"
)

func TestTwoControlPlanesOneAfterAnotherKeepDataAndLeaveNothingBehind(t *testing.T) {
	silentStderr(t)
	before := goleak.IgnoreCurrent()
	options := cluster.Options{Dir: t.TempDir()}
	created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: "default"}, Data: map[string]string{"key": "value"}}

	first := start(t, options)
	client := clientFor(t, first.RESTConfig())
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), created, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// A role that is damaged while it runs is mended by the next start.
	if err := client.RbacV1().ClusterRoles().Delete(t.Context(), "system:discovery", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	watches := openWatches(t, client, 20)
	stopWithin(t, first, 3*time.Second)
	for _, ended := range watches {
		<-ended
	}

	second := start(t, options)
	client = clientFor(t, second.RESTConfig())
	if _, err := client.RbacV1().ClusterRoles().Get(t.Context(), "system:discovery", metav1.GetOptions{}); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	found, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || found.Data["key"] != "value" {
		t.Errorf("after a restart the ConfigMap is %v, error %v", found, err)
	}
	stopWithin(t, second, 3*time.Second)
	assertNoLeaks(t, before)
}

func start(t *testing.T, options cluster.Options) *cluster.ControlPlane {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	began := time.Now()
	c, err := cluster.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %s", time.Since(began).Round(time.Millisecond))
	return c
}

func stopWithin(t *testing.T, c *cluster.ControlPlane, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	began := time.Now()
	if err := c.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began).Round(time.Millisecond)
	t.Logf("stopped in %s", took)
	if took > limit {
		t.Errorf("the stop took %s, more than %s", took, limit)
	}
}

func clientFor(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// openWatches opens watches as a user's programs would, and returns a channel
// each, which is closed when the watch has ended.
func openWatches(t *testing.T, client *kubernetes.Clientset, count int) []chan struct{} {
	t.Helper()
	var all []chan struct{}
	for range count {
		w, err := client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range w.ResultChan() {
			}
		}()
		all = append(all, ended)
	}
	return all
}

// assertNoLeaks waits until no goroutine is left that was not there before.
// Some of Kubernetes' end a moment after their server, and client-go's
// transports when they are collected.
func assertNoLeaks(t *testing.T, before goleak.Option) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		runtime.GC()
		err := goleak.Find(before)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("goroutines were left behind: %v", err)
		}
	}
}
