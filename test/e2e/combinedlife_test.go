package e2e

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/taskctl-dev/taskctl/test/harness"
)

// TestCombinedTasksAfterAKill checks that what a client knows of an earlier run
// is never mistaken for something of this one.
func TestCombinedTasksAfterAKill(t *testing.T) {
	dataDir := filepath.Join(t.TempDir(), "data")
	a := harness.StartIn(t, dataDir)
	createTasks(t, a, "default", 1, 2)
	kubectl(t, a, "create", "-f", file(t, storedManifest("ClusterTask", "kept", "details: survives")+storedManifest("CustomTask", "kept")))
	before := listVersion(t, a, "combinedtasks")
	stored := map[string]uint64{"clustertasks": listVersion(t, a, "clustertasks"), "customtasks": listVersion(t, a, "customtasks")}
	a.Kill()

	again := harness.StartIn(t, dataDir)
	for resource, before := range stored {
		if after := listVersion(t, again, resource); after < before {
			t.Errorf("the version of %s is %d, and was %d before the kill", resource, after, before)
		}
	}
	contains(t, kubectl(t, again, "get", "clustertasks,customtasks", "-o", "yaml"), "details: survives", "kind: CustomTask")
	if after := listVersion(t, again, "combinedtasks"); after <= before {
		t.Errorf("the version is %d, and was %d before the kill", after, before)
	}
	path := "/apis/search.task.example.example.com/v1/combinedtasks?resourceVersion=" + strconv.FormatUint(before, 10)
	r := again.Kubectl(t.Context(), "get", "--raw", path)
	if r.Code == 0 {
		t.Errorf("a list at a version of the killed run is answered: %s", r.Stdout)
	}
	contains(t, r.Stderr, "Expired")
	contains(t, kubectl(t, again, "get", "--raw", path+"&watch=1&timeoutSeconds=2"), `"type":"ERROR"`, `"code":410`)
	if names := kubectl(t, again, "get", "combinedtasks", "-o", "jsonpath={.items[*].metadata.name}"); names != "t0 t1" {
		t.Errorf("after the kill there are %q", names)
	}
}

func listVersion(t *testing.T, a *harness.Appliance, resource string) uint64 {
	t.Helper()
	raw := kubectl(t, a, "get", "--raw", searchAPI+resource+"?limit=1")
	_, rest, _ := strings.Cut(raw, `"resourceVersion":"`)
	text, _, _ := strings.Cut(rest, `"`)
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("the version of a list is no number: %v in %.300s", err, raw)
	}
	return number
}

// TestAnExpiredEventLeavesItsCombinedTask lets Events live for five seconds.
func TestAnExpiredEventLeavesItsCombinedTask(t *testing.T) {
	config := filepath.Join(t.TempDir(), "taskctl.yaml")
	write(t, config, "apiVersion: taskctl.example.com/v1alpha1\nkind: Appliance\ncluster:\n  apiServerArgs: {event-ttl: 5s}\n")
	a := harness.Start(t, "-f", config)
	createTasks(t, a, "default", 1)
	watch := lines(t, a, "get", "combinedtasks", "-w", "--output-watch-events")
	expectLine(t, watch, "MODIFIED t0", "0 <none>")
}
