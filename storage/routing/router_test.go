package routing_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/taskctl-dev/taskctl/storage/routing"
)

var names = []string{"main", "tasks", "bulk"}

// example is the routes of the configuration file in the README, and a few more.
func example(t *testing.T) *routing.Router {
	t.Helper()
	router, err := routing.New(names, []routing.Rule{
		{Backend: "tasks", Group: "example.example.com", Resource: "tasks"},
		{Backend: "bulk", Namespace: "load-*", Name: "*"},
		{Backend: "tasks", Prefix: "/registry/events/"},
		{Backend: "bulk", Resource: "nodes"},
		{Backend: "tasks", Group: "core", Resource: "services", Name: "web-*"},
		{Backend: "bulk", Regexp: `^/registry/secrets/[^/]+/big-`},
	})
	if err != nil {
		t.Fatal(err)
	}
	return router
}

func TestTheFirstRuleThatMatchesDecides(t *testing.T) {
	router := example(t)
	tests := []struct {
		key     string
		rule    int
		backend string
	}{
		{"/registry/example.example.com/tasks/default/a", 0, "tasks"},
		{"/registry/example.example.com/tasks/load-1/a", 0, "tasks"},
		{"/registry/example.example.com/tasks", 0, "tasks"},
		{"/registry/example.example.com/tasksets/default/a", routing.Default, "main"},
		{"/registry/pods/load-1/a", 1, "bulk"},
		{"/registry/events/load-1/a", 1, "bulk"},
		{"/registry/other.example.com/things/load-2/a", 1, "bulk"},
		{"/registry/services/specs/load-2/a", 1, "bulk"},
		{"/registry/namespaces/load-1", routing.Default, "main"},
		{"/registry/pods/payload-1/a", routing.Default, "main"},
		{"/registry/events/default/a", 2, "tasks"},
		{"/registry/events", 2, "tasks"},
		{"/registry/minions/one", 3, "bulk"},
		{"/registry/services/specs/default/web-1", 4, "tasks"},
		{"/registry/services/endpoints/default/web-1", routing.Default, "main"},
		{"/registry/secrets/default/big-1", 5, "bulk"},
		{"/registry/secrets/default/small", routing.Default, "main"},
		{"compact_rev_key", routing.Default, "main"},
		{"", routing.Default, "main"},
	}
	for _, test := range tests {
		t.Run(test.key, func(t *testing.T) {
			rule, backend := router.Match(test.key)
			if rule != test.rule || names[backend] != test.backend {
				t.Errorf("rule %d and backend %s, want %d and %s", rule, names[backend], test.rule, test.backend)
			}
			if router.Route(test.key) != backend {
				t.Error("Route says something else")
			}
		})
	}
}

func TestWhatKubernetesListsConcernsNoOtherBackend(t *testing.T) {
	router := example(t)
	tests := []struct {
		from, end string
		want      string
	}{
		{"/registry/example.example.com/tasks/", "/registry/example.example.com/tasks0", "tasks"},
		{"/registry/example.example.com/tasks/default/", "/registry/example.example.com/tasks/default0", "tasks"},
		{"/registry/example.example.com/tasks/default/b\x00", "/registry/example.example.com/tasks0", "tasks"},
		{"/registry/events/", "/registry/events0", "bulk tasks"},
		{"/registry/events/default/", "/registry/events/default0", "tasks"},
		{"/registry/events/load-1/", "/registry/events/load-10", "bulk"},
		{"/registry/pods/", "/registry/pods0", "bulk main"},
		{"/registry/pods/load-7/", "/registry/pods/load-70", "bulk"},
		{"/registry/pods/default/", "/registry/pods/default0", "main"},
		{"/registry/pods/default/x\x00", "/registry/pods/default0", "main"},
		{"/registry/minions/", "/registry/minions0", "bulk"},
		{"/registry/services/specs/default/", "/registry/services/specs/default0", "main tasks"},
		{"/registry/services/endpoints/default/", "/registry/services/endpoints/default0", "main"},
		{"/registry/secrets/default/", "/registry/secrets/default0", "bulk main"},
		{"/registry/", "/registry0", "bulk main tasks"},
		{"", "", "bulk main tasks"},
		{"compact_rev_key", "compact_rev_key\x00", "main"},
		{"a", "b", "main"},
	}
	for _, test := range tests {
		t.Run(test.from+" to "+test.end, func(t *testing.T) {
			if got := called(router.Overlap(test.from, test.end)); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestAReadOfARootConcernsWhatIsBelow(t *testing.T) {
	router := example(t)
	tests := []struct{ key, want string }{
		{"/registry/example.example.com/tasks", "tasks"},
		{"/registry/events", "bulk tasks"},
		{"/registry/minions", "bulk"},
		{"/registry/pods", "bulk main"},
		{"/registry/services/specs", "bulk main tasks"},
		{"/registry/pods/default/load-1", "main"},
		{"/registry/namespaces/load-1", "main"},
		{"compact_rev_key", "main"},
	}
	for _, test := range tests {
		t.Run(test.key, func(t *testing.T) {
			if got := called(router.Reads(test.key)); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func called(indexes []int) string {
	var words []string
	for _, index := range indexes {
		words = append(words, names[index])
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// TestOverlapLeavesNoKeyOut compares Overlap with Route over random rules,
// ranges and keys.
func TestOverlapLeavesNoKeyOut(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	keys := everyKey()
	for range 3000 {
		var rules []routing.Rule
		for range 1 + random.IntN(4) {
			rule := routing.Rule{Backend: pick(names...)}
			rule.Group = pick("", "", "core", "a.io", "a.*", "*", "apps", "storage.k8s.io")
			rule.Resource = pick("", "", "pods", "p*", "things", "services", "nodes", "*")
			rule.Namespace = pick("", "", "", "x", "x*", "*", "[xy]z")
			rule.Name = pick("", "", "", "a", "a*", "*", "?b")
			rule.Prefix = pick("", "", "", "", "/registry/pods/", "/registry/a.io/things/x", "/registry/p", "/", "/registry/services/specs/x/a")
			if random.IntN(8) == 0 {
				rule.Regexp = pick(`^/registry/pods/x/.*b$`, `things`, `^/registry/(pods|minions)/`, `^/reg|x`, `^/registry/a.io/`,
					`(pods|things)/x`, `x$`, `\bx\b`, `(?i)^/REGISTRY/P`, `^/registry/[^/]*/x/`, `(?m)^x`, `x$y|x`, `x$/b`, `(|a)*(|b)*`)
			}
			rules = append(rules, rule)
		}
		router, err := routing.New(names, rules)
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			from, end := pick(keys...), pick(keys...)
			switch random.IntN(4) {
			case 0:
				end = from + "0"
				from += "/"
			case 1:
				end = ""
			case 2:
				from += "\x00"
			}
			overlap := router.Overlap(from, end)
			if !slices.IsSorted(overlap) {
				t.Fatalf("%v is not in order", overlap)
			}
			for _, key := range keys {
				if key < from || end != "" && key >= end {
					continue
				}
				if own := router.Route(key); !slices.Contains(overlap, own) {
					t.Fatalf("rules %v: [%q, %q) has key %q of %s, and Overlap says %s", rules, from, end, key, names[own], called(overlap))
				}
			}
		}
	}
}

// everyKey is keys of all shapes, odd ones too.
func everyKey() []string {
	keys := []string{"", "/", "/reg", "/registry", "/registry/", "compact_rev_key", "/other/pods/x/a", "\xff\xff"}
	for _, root := range []string{"pods", "minions", "services/specs", "services/endpoints", "services", "podgroups", "storageclasses", "a.io", "a.io/things", "b.io/pods", "deployments", "unknown"} {
		keys = append(keys, "/registry/"+root)
		for _, below := range []string{"", "a", "x", "x/", "x/a", "x/ab", "xz/b", "yz/a/deeper", "x/a\xff", "a/x/b", "*"} {
			keys = append(keys, fmt.Sprintf("/registry/%s/%s", root, below))
		}
	}
	return keys
}

func TestARuleThatCannotBeIsRefused(t *testing.T) {
	for name, rule := range map[string]routing.Rule{
		"an unknown backend":  {Backend: "nowhere", Resource: "pods"},
		"a broken glob":       {Backend: "bulk", Resource: "[a"},
		"a broken expression": {Backend: "bulk", Regexp: "(a"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := routing.New(names, []routing.Rule{rule}); err == nil {
				t.Error("it is taken")
			}
		})
	}
}

func BenchmarkMatch(b *testing.B) {
	router, err := routing.New(names, []routing.Rule{
		{Backend: "tasks", Group: "example.example.com"},
		{Backend: "tasks", Group: "search.task.example.example.com"},
		{Backend: "tasks", Resource: "events"},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		router.Route("/registry/pods/default/some-pod-of-a-deployment-12345")
	}
}
