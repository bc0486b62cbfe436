package cluster_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taskctl-dev/taskctl/cluster"
	"github.com/taskctl-dev/taskctl/storage/endpoint"
	"github.com/taskctl-dev/taskctl/storage/etcd"
)

func TestAStoreOfTheUsersOwn(t *testing.T) {
	folder, err := os.MkdirTemp("", "store")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	store := &etcd.Server{Dir: filepath.Join(folder, "data"), Socket: filepath.Join(folder, "s")}
	ctx, stop := context.WithCancel(t.Context())
	ready, stopped := make(chan struct{}), make(chan error, 1)
	go func() { stopped <- store.Run(ctx, func() { close(ready) }) }()
	defer func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()
	<-ready

	c := start(t, cluster.Options{Storage: store.Endpoint()})
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stored", Namespace: "default"}}
	if _, err := clientFor(t, c.RESTConfig()).CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	stopWithin(t, c, 3*time.Second)

	// It goes on after the control plane, with what that has stored.
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{store.Endpoint().URL}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	found, err := client.Get(t.Context(), "/registry/configmaps/default/stored")
	if err != nil || len(found.Kvs) != 1 {
		t.Errorf("the store has %v, error %v", found, err)
	}
}

func TestAStoreThatDoesNotAnswerIsNamed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	url := "unix://" + filepath.Join(t.TempDir(), "nobody")
	_, err := cluster.Start(ctx, cluster.Options{Storage: endpoint.Endpoint{URL: url}})
	if err == nil || !strings.Contains(err.Error(), url) {
		t.Errorf("error %v, want one that names %s", err, url)
	}
}
