package aggregator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
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
