package cluster_test

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/taskctl-dev/taskctl/cluster"
	"github.com/taskctl-dev/taskctl/storage/serve"
)

func TestTheStoreOfTaskctlUnderATestEnvironment(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("a widget is stored in SQLite", func(t *testing.T) {
		store := serve.StartForTest(t, "sqlite")
		config := cluster.StartForTest(t, cluster.Options{CRDDirs: []string{"testdata/crds"}, Storage: store})

		c, err := client.New(config, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		widget := newWidget()
		widget.SetNamespace("default")
		widget.SetName("table")
		widget.Object["spec"] = map[string]any{"color": "red"}
		if err := c.Create(t.Context(), widget); err != nil {
			t.Fatal(err)
		}
		etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{store.URL}, Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		defer etcd.Close()
		found, err := etcd.Get(t.Context(), "/registry/samples.example.com/widgets/default/table")
		if err != nil || len(found.Kvs) != 1 {
			t.Errorf("the store has %v, error %v", found, err)
		}
	})
	assertNoLeaks(t, before)
}
