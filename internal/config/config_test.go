package config

import (
	"reflect"
	"strings"
	"testing"
)

const whole = `apiVersion: taskctl.example.com/v1alpha1
kind: Appliance
cluster:
  driver: auto
  apiServerArgs:
    oidc-issuer-url: https://issuer.example.com
    feature-gates: [A=true, B=false]
    v: 2
  kind: {}
storage:
  default: main
  backends:
  - {name: main, endpoint: "etcd://"}
  - {name: tasks, endpoint: "sqlite://tasks.db"}
  - {name: bulk, endpoint: "postgres://u@h/db", passwordFrom: {env: PGPASSWORD}}
  routes:
  - {backend: tasks, group: example.example.com, resource: tasks}
  - {backend: bulk, namespace: "load-*", name: "*"}
  - {backend: tasks, prefix: /registry/events/}
  indexes:
  - {group: example.example.com, resource: tasks, labels: true, fields: [spec.priority, spec.taskState]}
`

func TestWholeFile(t *testing.T) {
	got, err := Parse("taskctl.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		File: "taskctl.yaml",
		Cluster: Cluster{Driver: "auto", Line: 4, Kind: KindSection{Line: 9}, APIServerArgs: map[string][]string{
			"oidc-issuer-url": {"https://issuer.example.com"}, "feature-gates": {"A=true", "B=false"}, "v": {"2"},
		}},
		Storage: Storage{
			Default: "main", Line: 11,
			Backends: []Backend{
				{Name: "main", Endpoint: "etcd://", Line: 13},
				{Name: "tasks", Endpoint: "sqlite://tasks.db", Line: 14},
				{Name: "bulk", Endpoint: "postgres://u@h/db", PasswordFrom: PasswordFrom{Env: "PGPASSWORD"}, Line: 15},
			},
			Routes: []Route{
				{Backend: "tasks", Group: "example.example.com", Resource: "tasks", Line: 17},
				{Backend: "bulk", Namespace: "load-*", Name: "*", Line: 18},
				{Backend: "tasks", Prefix: "/registry/events/", Line: 19},
			},
			Indexes: []Index{{Group: "example.example.com", Resource: "tasks", Labels: true, Fields: []string{"spec.priority", "spec.taskState"}, Line: 21}},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// replaced is the whole file with one piece of text replaced.
func replaced(t *testing.T, old, new string) string {
	t.Helper()
	if strings.Count(whole, old) != 1 {
		t.Fatalf("%q stands in the file %d times", old, strings.Count(whole, old))
	}
	return strings.Replace(whole, old, new, 1)
}

func TestErrorsNameFileLineAndField(t *testing.T) {
	for name, test := range map[string]struct{ old, new, want string }{
		"unknown field":               {"  driver: auto", "  drivr: auto", "t.yaml:4: cluster.drivr: there is no such field"},
		"unknown field in list":       {"resource: tasks}\n  - {backend: bulk", "resorce: tasks}\n  - {backend: bulk", "t.yaml:17: storage.routes[0].resorce: there is no such field"},
		"repeated field":              {"  driver: auto", "  driver: auto\n  driver: auto", "t.yaml:5: cluster.driver: it stands here twice"},
		"repeated flag":               {"    v: 2", "    v: 2\n    v: 3", "t.yaml:9: cluster.apiServerArgs.v: it stands here twice"},
		"unknown driver":              {"driver: auto", "driver: docker", `t.yaml:4: cluster.driver: "docker" is not known`},
		"wrong kind of value":         {"  default: main", "  default: [main]", "t.yaml:11: storage.default: it must be a string"},
		"list expected":               {"indexes:\n  - {group", "indexes:\n    {group", "t.yaml:21: storage.indexes: it must be a list"},
		"boolean expected":            {"labels: true", "labels: 1", "t.yaml:21: storage.indexes[0].labels: it must be true or false"},
		"unknown backend":             {"backend: bulk,", "backend: big,", `t.yaml:18: storage.routes[1]: there is no backend "big"; there are: main, tasks, bulk`},
		"unknown default":             {"default: main", "default: mian", `t.yaml:11: storage.default: there is no backend "mian"`},
		"endpoint of no scheme":       {"sqlite://tasks.db", "tasks.db", "t.yaml:14: storage.backends[1].endpoint: the endpoint has no scheme that is known"},
		"endpoint of no host":         {"postgres://u@h/db", "postgres:///db", "t.yaml:15: storage.backends[2].endpoint: the postgres:// URL names no host"},
		"endpoint that doesn't parse": {"postgres://u@h/db", "postgres://u@h:port/db", "t.yaml:15: storage.backends[2].endpoint: the postgres:// URL doesn't parse"},
		"two password sources":        {"{env: PGPASSWORD}", "{env: A, file: b}", "t.yaml:15: storage.backends[2].passwordFrom: it needs either env or file"},
		"two backends of one name":    {"name: tasks,", "name: main,", `t.yaml:14: storage.backends[1]: there are two backends with the name "main"`},
		"route that can never match":  {"namespace: \"load-*\", name: \"*\"", "group: example.example.com, resource: tasks, namespace: a", "t.yaml:18: storage.routes[1]: it can never match: the route in line 17"},
		"broken glob":                 {"load-*", "load-[", "t.yaml:18: storage.routes[1].namespace: the glob"},
		"index of nothing":            {"labels: true, fields: [spec.priority, spec.taskState]", "labels: false", "t.yaml:21: storage.indexes[0]: it indexes nothing"},
		"another version":             {"v1alpha1", "v1", "t.yaml:1: apiVersion:"},
		"another kind":                {"kind: Appliance", "kind: Cluster", `t.yaml:2: kind: "Cluster" is not known`},
		"missing kind":                {"kind: Appliance\n", "", "t.yaml:1: kind is missing"},
		"second document":             {"kind: Appliance\n", "kind: Appliance\n---\na: b\n", "a second document"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("t.yaml", []byte(replaced(t, test.old, test.new)))
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v\nwant  %s", err, test.want)
			}
		})
	}
}

func TestFilesThatAreNone(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "list": "- a", "no YAML": "a: ["} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("t.yaml", []byte(content)); err == nil || !strings.HasPrefix(err.Error(), "t.yaml") {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := Read("/nothing/here.yaml"); err == nil {
		t.Error("a missing file is no error")
	}
}

func TestPasswordsAreInNoError(t *testing.T) {
	for _, endpoint := range []string{
		"postgres://u:s3cret@h:port/db", "mysql://u:s3cret@tcp(h)/db", "mysql://u:s3cret@h/db", "oracle://u:s3cret@h/db", "postgres://u:s3cret@/db",
	} {
		_, err := Parse("t.yaml", []byte(replaced(t, "postgres://u@h/db", endpoint)))
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

func TestRedacted(t *testing.T) {
	for endpoint, want := range map[string]string{
		"etcd://":                           "etcd://",
		"sqlite://tasks.db":                 "sqlite://tasks.db",
		"postgres://u:s3cret@h/db":          "postgres://u:xxxxx@h/db",
		"postgres://u@h/db?password=s3cret": "postgres://u@h/db?password=xxxxx",
		"mysql://u:s3:cr@t@tcp(h:3306)/db":  "mysql://u:xxxxx@tcp(h:3306)/db",
		"mysql://u@tcp(h:3306)/db":          "mysql://u@tcp(h:3306)/db",
		"https://h:2379":                    "https://h:2379",
		"postgres://u:s3cret@h:port/db":     "postgres://…",
	} {
		if got := Redacted(endpoint); got != want {
			t.Errorf("%s: %s, want %s", endpoint, got, want)
		}
	}
}

func TestGoodEndpoints(t *testing.T) {
	for _, endpoint := range []string{
		"etcd://", "sqlite://tasks.db", "sqlite:///var/lib/tasks.db", "postgres://u@h/db", "postgres:///db?host=/run/pg",
		"mysql://u:p@tcp(h:3306)/db", "mysql://u@unix(/run/mysql.sock)/db", "https://h:2379", "http://h:2379",
	} {
		if err := CheckEndpoint(endpoint); err != nil {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

func TestRoutesThatCover(t *testing.T) {
	for name, test := range map[string]struct {
		first, second Route
		want          bool
	}{
		"everything covers all":        {Route{}, Route{Group: "g", Name: "n"}, true},
		"group does not cover another": {Route{Group: "g"}, Route{Group: "h"}, false},
		"group does not cover all":     {Route{Group: "g"}, Route{}, false},
		"glob covers a name":           {Route{Namespace: "load-*"}, Route{Namespace: "load-1"}, true},
		"glob does not cover a glob":   {Route{Namespace: "load-*"}, Route{Namespace: "*"}, false},
		"star asks for a name":         {Route{Name: "*"}, Route{}, false},
		"prefix covers a longer one":   {Route{Prefix: "/registry/"}, Route{Prefix: "/registry/events/"}, true},
		"and not a shorter one":        {Route{Prefix: "/registry/events/"}, Route{Prefix: "/registry/"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.first.covers(test.second); got != test.want {
				t.Errorf("%t", got)
			}
		})
	}
}
