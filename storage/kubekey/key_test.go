package kubekey

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestKeysOfEveryLayout(t *testing.T) {
	core := []string{Core}
	for key, want := range map[string]Key{
		"/registry/pods/default/web":                                             {core, "pods", "default", "web"},
		"/registry/namespaces/default":                                           {core, "namespaces", "", "default"},
		"/registry/deployments/default/web":                                      {[]string{"apps"}, "deployments", "default", "web"},
		"/registry/services/specs/default/web":                                   {core, "services", "default", "web"},
		"/registry/services/endpoints/default/web":                               {core, "endpoints", "default", "web"},
		"/registry/minions/node-1":                                               {core, "nodes", "", "node-1"},
		"/registry/controllers/default/web":                                      {core, "replicationcontrollers", "default", "web"},
		"/registry/ingress/default/web":                                          {[]string{"networking.k8s.io"}, "ingresses", "default", "web"},
		"/registry/events/default/web.1":                                         {[]string{Core, "events.k8s.io"}, "events", "default", "web.1"},
		"/registry/example.example.com/tasks/default/a":                          {[]string{"example.example.com"}, "tasks", "default", "a"},
		"/registry/search.task.example.example.com/clustertasks/a":               {[]string{"search.task.example.example.com"}, "clustertasks", "", "a"},
		"/registry/apiextensions.k8s.io/customresourcedefinitions/a.example.com": {[]string{"apiextensions.k8s.io"}, "customresourcedefinitions", "", "a.example.com"},
		"/registry/ranges/serviceips":                                            {nil, "ranges", "", "serviceips"},
		"/registry/events":                                                       {[]string{Core, "events.k8s.io"}, "events", "", ""},
		"/registry/example.example.com/tasks":                                    {[]string{"example.example.com"}, "tasks", "", ""},
	} {
		got, ok := Parse(key)
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v %t, want %+v", key, got, ok, want)
		}
		if len(want.Groups) == 0 || want.Name == "" {
			continue
		}
		for _, group := range want.Groups {
			if made := Of(group, want.Resource, want.Namespace, want.Name); made != key {
				t.Errorf("%s %s: %s, want %s", group, want.Resource, made, key)
			}
		}
	}
	for _, key := range []string{"", "compact_rev_key", "/registry/", "/registr", "/other/pods/a"} {
		if got, ok := Parse(key); ok {
			t.Errorf("%q is read as %+v", key, got)
		}
	}
}

// Every kind of Kubernetes' own scheme that is stored has its group here.
func TestEveryBuiltInResourceIsKnown(t *testing.T) {
	notStored := map[string]bool{
		"APIGroup": true, "APIVersions": true, "Binding": true, "ComponentStatus": true, "RangeAllocation": true,
		"SerializedReference": true, "Status": true, "DeploymentRollback": true, "Scale": true, "TokenRequest": true,
		"WatchEvent": true,
	}
	for kind := range scheme.Scheme.AllKnownTypes() {
		if notStored[kind.Kind] || kind.Version == "__internal" || kind.Group == "extensions" || kind.Group == "policy" && kind.Kind == "Eviction" ||
			strings.HasSuffix(kind.Kind, "List") || strings.HasSuffix(kind.Kind, "Options") || strings.HasSuffix(kind.Kind, "Review") {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		name := resource.Resource
		if kind.Kind == "Endpoints" {
			name = "endpoints" // already a plural
		}
		if !IsBuiltIn(kind.Group, name) {
			t.Errorf("%s is not known: its resource would be %s", kind, name)
		}
	}
}
