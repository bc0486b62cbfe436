package cluster_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/taskctl-dev/taskctl/cluster"
)

func TestPainterPaintsWidgets(t *testing.T) {
	// A control plane for this test, stopped when the test ends.
	config := cluster.StartForTest(t, cluster.Options{CRDDirs: []string{"testdata/crds"}})
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	// The operator, as its main function runs it. It has to end before the
	// control plane does.
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- runPainter(ctx, config) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Errorf("the operator: %v", err)
		}
	})

	widget := newWidget()
	widget.SetNamespace("default")
	widget.SetName("chair")
	widget.Object["spec"] = map[string]any{"color": "red"}
	if err := c.Create(t.Context(), widget); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			if err := c.Get(ctx, client.ObjectKeyFromObject(widget), widget); err != nil {
				return false, err
			}
			painted, _, _ := unstructured.NestedString(widget.Object, "status", "painted")
			return painted == "red", nil
		})
	if err != nil {
		t.Errorf("the widget was not painted: %v; it is %v", err, widget.Object)
	}
}
