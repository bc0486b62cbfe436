package cluster_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/cluster"
)

func TestScratch(t *testing.T) {
	f, _ := os.Create("/tmp/H1-log.txt")
	dir := t.TempDir()
	for range 3 {
		start := time.Now()
		cp, err := cluster.Start(t.Context(), cluster.Options{Dir: dir, Log: f})
		if err != nil {
			t.Fatal(err)
		}
		t.Log("up", time.Since(start))
		start = time.Now()
		if err := cp.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		t.Log("down", time.Since(start))
	}
}
