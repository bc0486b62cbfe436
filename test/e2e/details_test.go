package e2e

import (
	"net/url"
	"strings"
	"testing"

	"github.com/taskctl-dev/taskctl/test/harness"
)

// storedSearch finds Tasks by their details, right after they are written.
func storedSearch(t *testing.T, a *harness.Appliance, namespace string) {
	kubectl(t, a, "apply", "-n", namespace, "-f", file(t, `apiVersion: example.example.com/v1
kind: Task
metadata: {name: bake}
spec: {priority: 3, deadline: "2099-01-02T03:04:05Z", details: "bake a brown bread for breakfast"}
`))
	search := func(query string) harness.Result {
		return a.Kubectl(t.Context(), "get", "--raw", searchAPI+"details?q="+url.QueryEscape(query))
	}
	for query, found := range map[string]bool{"brown BREAD": true, `"bread brown"`: false, "break* AND NOT cake": true} {
		r := mustSucceed(t, search(query))
		if got := strings.Contains(r.Stdout, `"name":"bake"`); got != found {
			t.Errorf("%s: %s", query, r.Stdout)
		}
	}
	broken := search("brown AND")
	if broken.Code == 0 || !strings.Contains(broken.Stderr, "BadRequest") || !strings.Contains(broken.Stderr, "at character 10") {
		t.Errorf("a broken query: %+v", broken)
	}
}
