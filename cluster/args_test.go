package cluster_test

import (
	"strings"
	"testing"

	"github.com/taskctl-dev/taskctl/cluster"
	"github.com/taskctl-dev/taskctl/cluster/embedded"
)

func TestArguments(t *testing.T) {
	for name, test := range map[string]struct {
		args map[string][]string
		want []string // parts of the error; none: it is allowed
	}{
		"nothing is allowed":                       {nil, nil},
		"a value is allowed":                       {map[string][]string{"event-ttl": {"2h"}}, nil},
		"a list is allowed":                        {map[string][]string{"oidc-signing-algs": {"RS256", "ES256"}}, nil},
		"one flag of ours is refused by name":      {map[string][]string{"etcd-servers": {"http://127.0.0.1:2379"}}, []string{"etcd-servers", "set by taskctl", "--storage"}},
		"all that is wrong is told":                {map[string][]string{"secure-port": {"6443"}, "no-such": {"x"}}, []string{"secure-port", "--port", "no-such", "no such flag"}},
		"a value that does not parse":              {map[string][]string{"event-ttl": {"soon"}}, []string{"event-ttl", "soon"}},
		"a list for a flag that takes one value":   {map[string][]string{"event-ttl": {"1h", "2h"}}, []string{"event-ttl", "one value", "list of 2"}},
		"a flag without a value":                   {map[string][]string{"event-ttl": {}}, []string{"event-ttl", "no value"}},
		"a flag that is written with dashes":       {map[string][]string{"--event-ttl": {"1h"}}, []string{"without dashes: event-ttl"}},
		"authorization other than RBAC is refused": {map[string][]string{"authorization-mode": {"AlwaysAllow"}}, []string{"authorization-mode", "RBAC"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := embedded.CheckArgs(test.args)
			if len(test.want) == 0 {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if err == nil {
				t.Fatal("allowed")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %q: %v", part, err)
				}
			}
			if _, startErr := cluster.Start(t.Context(), cluster.Options{APIServerArgs: test.args}); startErr == nil {
				t.Error("Start takes what CheckArgs refuses")
			}
		})
	}
}
