package routing_test

import (
	"slices"
	"testing"

	"github.com/taskctl-dev/taskctl/storage/routing"
)

// A list that an expression can't match does not concern its backend.
func TestAListConcernsTheBackendsWhoseExpressionsCanMatch(t *testing.T) {
	for _, test := range []struct {
		expression, prefix string
		want               []int
	}{
		{"^/registry/(clusterroles|roles)/", "/registry/pods/", []int{0}},
		{"^/registry/(clusterroles|roles)/", "/registry/roles/", []int{1}},
		{"^/registry/(clusterroles|roles)/", "/registry/roles/default/", []int{1}},
		{"^/registry/(clusterroles|roles)/", "/registry/", []int{0, 1}},
		{"^/registry/[^/]+/kube-system/", "/registry/pods/", []int{0, 1}},
		{"^/registry/[^/]+/kube-system/", "/registry/pods/default/", []int{0}},
		{"roles/", "/registry/roles/", []int{1}},
		{"roles/", "/registry/pods/", []int{0, 1}},
		{"roles/$", "/registry/roles/", []int{0, 1}},
		{"roles$/x|^/registry/roles", "/registry/roles/x/", []int{1}},
		{"roles$/x", "/registry/roles/x/", []int{0, 1}},
		{"(|a)*(|b)*^/registry/roles/", "/registry/roles/", []int{1}},
		{"(?i)^/REGISTRY/pods/", "/registry/pods/", []int{1}},
	} {
		router, err := routing.New([]string{"main", "other"}, []routing.Rule{{Backend: "other", Regexp: test.expression}})
		if err != nil {
			t.Fatal(err)
		}
		end := test.prefix[:len(test.prefix)-1] + "0"
		if got := router.Overlap(test.prefix, end); !slices.Equal(got, test.want) {
			t.Errorf("%s over %s: %v, want %v", test.expression, test.prefix, got, test.want)
		}
	}
}
