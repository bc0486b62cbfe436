package aggregator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
)

func storedNamespaces(t *testing.T, c control) {
	k := storedKind{c, "CustomTask", "customtasks", c.namespace(t)}
	nowhere := storedKind{c, "CustomTask", "customtasks", "no-such-namespace"}
	nowhere.refused(t, []string{"NotFound", `namespaces "no-such-namespace" not found`}, "create", "-f", k.file(t, k.manifest("a", "priority: 1")))

	held := strings.Replace(k.manifest("held", "priority: 1"), "name: held", "name: held\n  finalizers: [example.com/held]", 1)
	k.kubectl(t, "create", "-f", k.file(t, held))
	start := time.Now()
	k.kubectl(t, "delete", "namespace", k.namespace, "--wait=false")
	eventually(t, "the namespace is being deleted", func() error {
		r := k.try(t, "create", "-f", k.file(t, k.manifest("late", "priority: 1")))
		if r.Code == 0 || !strings.Contains(r.Stderr, "being terminated") {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	k.kubectl(t, "patch", "customtasks", "held", "--type=merge", `-p={"metadata":{"finalizers":null}}`)
	r := c.Kubectl(t.Context(), "wait", "--for=delete", "namespace/"+k.namespace, "--timeout=60s")
	if r.Code != 0 {
		t.Errorf("the namespace is still there after %s: %+v", time.Since(start), r)
	}
}

// storedOrphans deletes a namespace while nobody serves what is in it: once with
// the API still registered, where Kubernetes waits for it, and once without,
// where Kubernetes can't know.
func storedOrphans(t *testing.T, c control, s *server) {
	again := func() {
		s.stop()
		options := c.storing(t)
		options.Listen = listenAgain(s.address)
		s = c.run(t, options)
	}
	again()
	waiting := storedKind{c, "CustomTask", "customtasks", c.namespace(t)}
	orphaned := storedKind{c, "CustomTask", "customtasks", c.namespace(t)}
	for _, k := range []storedKind{waiting, orphaned} {
		k.kubectl(t, "create", "-f", k.file(t, k.manifest("left", "priority: 1")))
	}
	s.stop()
	waiting.kubectl(t, "delete", "namespace", waiting.namespace, "--wait=false")
	orphaned.behind(t, "left", func(task *searchv1.ClusterTask) { task.Namespace = "long-gone" })

	again()
	eventually(t, "what is in a namespace that is gone is deleted", func() error {
		if list := s.get(t, c.asAdmin(t), storedKind{namespace: "long-gone", resource: "customtasks"}.path()); strings.Contains(list.body, `"name":"left"`) {
			return fmt.Errorf("%s", list.body)
		}
		return nil
	})
	waiting.kubectl(t, "wait", "--for=delete", "namespace/"+waiting.namespace, "--timeout=55s")
	if left := s.get(t, c.asAdmin(t), waiting.path()); strings.Contains(left.body, `"name":"left"`) {
		t.Errorf("left is %s", left.body)
	}
}

func storedOwners(t *testing.T, c control) {
	k := storedKind{c, "CustomTask", "customtasks", c.namespace(t)}
	k.kubectl(t, "create", "configmap", "owner")
	uid := k.kubectl(t, "get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}")
	owned := strings.Replace(k.manifest("owned", "priority: 1"), "name: owned",
		"name: owned\n  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: "+uid+"}]", 1)
	k.kubectl(t, "create", "-f", k.file(t, owned))
	k.kubectl(t, "delete", "configmap", "owner")
	k.kubectl(t, "wait", "--for=delete", "customtasks/owned", "--timeout=60s")
}

func storedRestart(t *testing.T, c control, s *server) {
	k := storedKind{c, "ClusterTask", "clustertasks", ""}
	k.kubectl(t, "create", "-f", k.file(t, k.manifest("kept", "priority: 4")))
	version := func() (number int64) {
		var list struct {
			Metadata struct {
				ResourceVersion json.Number
			}
		}
		must(t, json.Unmarshal([]byte(s.get(t, c.asAdmin(t), k.path()).body), &list))
		number, err := list.Metadata.ResourceVersion.Int64()
		must(t, err)
		return number
	}
	before := version()
	address := s.address
	s.stop()
	options := c.storing(t)
	options.Listen = listenAgain(address)
	s = c.run(t, options)
	if after := version(); after < before {
		t.Errorf("the version is %d, and was %d before the restart", after, before)
	}
	same(t, "priority", k.field(t, "kept", ".spec.priority"), "4")
	k.kubectl(t, "delete", "clustertasks", "kept")
}
