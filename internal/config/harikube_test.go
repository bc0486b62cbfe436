package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// topology is the example of HariKube's documentation, with all its options.
const topology = `backends:
- name: rbac
  endpoint: http://172.17.0.1:2579
  regexp:
    prefix: (clusterrolebindings|clusterroles|rolebindings|roles|serviceaccounts)
    key: (clusterrolebindings|clusterroles|rolebindings|roles|serviceaccounts)
- name: kube-system
  endpoint: mysql://root:passwd@tcp(172.17.0.1:3306)/kube_system
  namespace:
    namespace: kube-system
    kinds: [pods, deployments, services]
  connectionPool:
    maxIdle: 5
    maxOpen: 90
    maxLifeTime: 5m
    maxIdleLifeTime: 30s
  compactInterval: 5m
- name: load
  endpoint: https://172.17.0.1:2579
  namespace:
    namespace: load
  backendTLS:
    caFile: /path/to/ca-file
    certFile: /path/to/cert-file
    keyFile: /path/to/key-file
    skipVerify: true
- name: pods
  endpoint: postgres://postgres:passwd@172.17.0.1:5432/pods
  prefix:
    prefix: pods
- name: shirts
  endpoint: sqlite://./db/shirts.db?_journal=WAL&cache=shared
  customresource:
    group: stable.example.com
    kind: shirts
`

func TestTopologyOfHariKube(t *testing.T) {
	got, notices, err := ParseTopology("topology.yaml", []byte(topology), Backend{Endpoint: "etcd://"})
	if err != nil {
		t.Fatal(err)
	}
	want := Storage{
		Default: "default", Line: 1,
		Backends: []Backend{
			{Name: "default", Endpoint: "etcd://"},
			{Name: "rbac", Endpoint: "http://172.17.0.1:2579", Line: 2},
			{
				Name: "kube-system", Endpoint: "mysql://root:passwd@tcp(172.17.0.1:3306)/kube_system", Line: 7,
				Pool: Pool{MaxIdle: 5, MaxOpen: 90, MaxLifeTime: 5 * time.Minute, MaxIdleLifeTime: 30 * time.Second},
			},
			{
				Name: "load", Endpoint: "https://172.17.0.1:2579", Line: 18,
				TLS: TLS{CAFile: "/path/to/ca-file", CertFile: "/path/to/cert-file", KeyFile: "/path/to/key-file", SkipVerify: true},
			},
			{Name: "pods", Endpoint: "postgres://postgres:passwd@172.17.0.1:5432/pods", Line: 27},
			{Name: "shirts", Endpoint: "sqlite://db/shirts.db", Line: 31},
		},
		Routes: []Route{
			{Backend: "rbac", Regexp: "(clusterrolebindings|clusterroles|rolebindings|roles|serviceaccounts)", Line: 2},
			{Backend: "kube-system", Prefix: "/registry/pods/kube-system/", Line: 7},
			{Backend: "kube-system", Prefix: "/registry/deployments/kube-system/", Line: 7},
			{Backend: "kube-system", Prefix: "/registry/services/specs/kube-system/", Line: 7},
			{Backend: "load", Namespace: "load", Line: 18},
			{Backend: "pods", Prefix: "/registry/pods", Line: 27},
			{Backend: "shirts", Prefix: "/registry/stable.example.com/shirts/", Line: 31},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if len(notices) != 1 || !strings.HasPrefix(notices[0], "topology.yaml:17: backends[1].compactInterval: it has no effect here") {
		t.Errorf("notices %q", notices)
	}
}

func TestErrorsOfATopologyNameFileLineAndField(t *testing.T) {
	for name, test := range map[string]struct{ old, new, want string }{
		"unknown field":           {"  prefix:\n    prefix: pods", "  prefx:\n    prefix: pods", "t.yaml:29: backends[3].prefx: there is no such field"},
		"unknown matcher field":   {"    prefix: pods", "    prfix: pods", "t.yaml:30: backends[3].prefix.prfix: there is no such field"},
		"no matcher":              {"  prefix:\n    prefix: pods\n", "", "t.yaml:27: backends[3]: a matcher is missing"},
		"two matchers":            {"    prefix: pods\n", "    prefix: pods\n  namespace: {namespace: a}\n", "t.yaml:27: backends[3]: there are several matchers (prefix, namespace)"},
		"empty prefix":            {"    prefix: pods\n", "    prefix: \"\"\n", "t.yaml:30: backends[3].prefix: prefix is missing"},
		"broken expression":       {"    key: (clusterrolebindings", "    key: ((clusterrolebindings", "t.yaml:6: backends[0].regexp.key: the regular expression is broken"},
		"no name":                 {"- name: pods\n  endpoint", "- endpoint", "t.yaml:27: backends[3]: name is missing"},
		"one name twice":          {"- name: pods", "- name: rbac", `t.yaml:27: backends[3]: there are two backends with the name "rbac"`},
		"one endpoint twice":      {"https://172.17.0.1:2579", "http://172.17.0.1:2579", `t.yaml:19: backends[2].endpoint: the backend "rbac" has the same endpoint`},
		"endpoint of no scheme":   {"sqlite://./db", "./db", "t.yaml:32: backends[4].endpoint: the endpoint has no scheme that is known"},
		"embedded etcd":           {"sqlite://./db/shirts.db?_journal=WAL&cache=shared", "etcd://", "t.yaml:32: backends[4].endpoint: an etcd is named by"},
		"sqlite without a file":   {"sqlite://./db/shirts.db?_journal=WAL&cache=shared", "sqlite://?cache=shared", "t.yaml:32: backends[4].endpoint: sqlite:// needs the path of a file"},
		"custom resource as kind": {"[pods, deployments, services]", "[pods, shirts]", `t.yaml:11: backends[1].namespace.kinds[1]: "shirts" is no built-in resource`},
		"kind instead of plural":  {"[pods, deployments, services]", "[Pod]", `t.yaml:11: backends[1].namespace.kinds[0]: "Pod" is not a resource`},
		"core as custom resource": {"group: stable.example.com", "group: apps", "t.yaml:34: backends[4].customresource: group is missing, or is not the group"},
		"no kind":                 {"    kind: shirts\n", "", "t.yaml:34: backends[4].customresource: kind is missing"},
		"glob as namespace":       {"namespace: load", "namespace: load-*", `t.yaml:21: backends[2].namespace.namespace: "load-*" is not a name`},
		"certificate without key": {"    keyFile: /path/to/key-file\n", "", "t.yaml:23: backends[2].backendTLS: certFile and keyFile go together"},
		"no boolean":              {"skipVerify: true", "skipVerify: 1", "t.yaml:26: backends[2].backendTLS.skipVerify: it must be true or false"},
		"too few connections":     {"maxOpen: 90", "maxOpen: 2", "t.yaml:14: backends[1].connectionPool.maxOpen: a store needs 3 connections"},
		"no number":               {"maxIdle: 5", "maxIdle: many", "t.yaml:13: backends[1].connectionPool.maxIdle: it must be a whole number"},
		"no duration":             {"maxLifeTime: 5m", "maxLifeTime: 5 minutes", "t.yaml:15: backends[1].connectionPool.maxLifeTime: it must be a length of time"},
		"hidden by a prefix":      {"group: stable.example.com\n    kind: shirts", "group: pods.example.com\n    kind: shirts", `t.yaml:31: backends[4]: it can never match prefix=/registry/pods.example.com/shirts/: the backend "pods" in line 27 comes first`},
		"hidden by an expression": {"prefix:\n    prefix: pods", "prefix:\n    prefix: rolebindings/", `t.yaml:27: backends[3]: it can never match prefix=/registry/rolebindings/: the backend "rbac" in line 2`},
		"hidden by a namespace":   {"prefix:\n    prefix: pods", "prefix:\n    prefix: secrets/load/", `t.yaml:27: backends[3]: it can never match prefix=/registry/secrets/load/: the backend "load" in line 18`},
		"no backends":             {topology, "backends: []", "t.yaml:1: backends are missing"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Count(topology, test.old) != 1 {
				t.Fatalf("%q stands in the file %d times", test.old, strings.Count(topology, test.old))
			}
			_, _, err := ParseTopology("t.yaml", []byte(strings.Replace(topology, test.old, test.new, 1)), Backend{Endpoint: "etcd://"})
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v\nwant  %s", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "passwd") {
				t.Errorf("a password is in the error: %v", err)
			}
		})
	}
}

func TestFallbackOfATopology(t *testing.T) {
	named := strings.Replace(topology, "name: pods", "name: default", 1)
	got, _, err := ParseTopology("t.yaml", []byte(named), Backend{Endpoint: "sqlite://store.db"})
	if err != nil || got.Default != "default-2" || got.Backends[0].Name != "default-2" || got.Backends[0].Endpoint != "sqlite://store.db" {
		t.Errorf("%+v, %v", got, err)
	}
	_, _, err = ParseTopology("t.yaml", []byte(topology), Backend{Endpoint: "sqlite://db/shirts.db"})
	if err == nil || !strings.Contains(err.Error(), "t.yaml:31: backends[4]: endpoint: what nothing matches is stored there already") {
		t.Errorf("error %v", err)
	}
	if _, _, err := ReadTopology("/nothing/here.yaml", Backend{}); err == nil {
		t.Error("a missing file is no error")
	}
}

func TestExpressionsAreAnchoredAtTheResource(t *testing.T) {
	for expression, want := range map[string]string{
		"^(pods|secrets)/": "^/registry/(pods|secrets)/",
		"^/registry/pods/": "^/registry/pods/",
		"pods":             "pods",
	} {
		content := "backends:\n- {name: a, endpoint: \"sqlite://a.db\", regexp: {prefix: \"" + expression + "\"}}\n"
		got, _, err := ParseTopology("t.yaml", []byte(content), Backend{Endpoint: "etcd://"})
		if err != nil || len(got.Routes) != 1 || got.Routes[0].Regexp != want {
			t.Errorf("%s: %+v, %v", expression, got.Routes, err)
		}
	}
}
