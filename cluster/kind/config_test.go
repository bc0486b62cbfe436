package kind

import (
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/pki"
)

func newCluster(t *testing.T, section config.KindSection) *Cluster {
	t.Helper()
	dir := t.TempDir()
	identities, err := pki.Open(filepath.Join(dir, "pki"), pki.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &Cluster{
		Node:    Node{Cluster: "taskctl-test", SocketDir: filepath.Join(dir, "run")},
		Socket:  filepath.Join(dir, "run", "etcd.sock"),
		Port:    6550,
		PKI:     identities,
		Section: section,
	}
}

// clusterConfiguration is our patch of that kind.
func clusterConfiguration(t *testing.T, patches []string) map[string]any {
	t.Helper()
	last := map[string]any{}
	for _, patch := range patches {
		document := map[string]any{}
		if err := yaml.Unmarshal([]byte(patch), &document); err != nil {
			t.Fatal(err)
		}
		if document["apiVersion"] != nil {
			t.Errorf("a patch with an apiVersion is left out in silence where it does not match: %s", patch)
		}
		if document["kind"] == "ClusterConfiguration" {
			last = document
		}
	}
	return last
}

func TestTheNodeFindsOurStoreAndAuthorities(t *testing.T) {
	c := newCluster(t, config.KindSection{
		ExtraMounts: []config.Mount{{HostPath: "/srv", ContainerPath: "/srv", ReadOnly: true}},
		Labels:      map[string]string{"disk": "fast"},
	})
	made, err := c.newConfig(nodeFacts{version: "v1.37.2", resources: true, periods: true})
	if err != nil {
		t.Fatal(err)
	}
	node := made.Nodes[0]
	mounts := map[string]string{}
	for _, mount := range node.ExtraMounts {
		mounts[mount.ContainerPath] = mount.HostPath
		if !mount.Readonly {
			t.Errorf("%s may be written to from the node", mount.HostPath)
		}
	}
	for path, want := range map[string]string{
		"/taskctl/run": c.Node.SocketDir, "/srv": "/srv",
		"/etc/kubernetes/pki/ca.key": c.PKI.CAFiles().Key, "/etc/kubernetes/pki/front-proxy-ca.crt": c.PKI.FrontProxyCAFiles().Cert,
		"/etc/kubernetes/pki/sa.key": c.PKI.ServiceAccountKeyFile(), "/etc/kubernetes/pki/sa.pub": c.PKI.ServiceAccountFiles().Cert,
	} {
		if mounts[path] != want {
			t.Errorf("%s is %q, want %q", path, mounts[path], want)
		}
	}
	if len(made.Nodes) != 1 || node.Labels["disk"] != "fast" || made.Networking.APIServerPort != 6550 || made.Networking.APIServerAddress != "127.0.0.1" {
		t.Errorf("the configuration is %+v", made)
	}
	etcd := clusterConfiguration(t, made.KubeadmConfigPatches)["etcd"].(map[string]any)["external"].(map[string]any)
	if endpoints := etcd["endpoints"].([]any); len(endpoints) != 1 || endpoints[0] != "unix:///taskctl/run/etcd.sock" {
		t.Errorf("endpoints %v", endpoints)
	}
}

func TestPatches(t *testing.T) {
	users := `kind: ClusterConfiguration
apiServer:
  extraVolumes:
  - {name: audit, hostPath: /audit, mountPath: /audit}
`
	for name, test := range map[string]struct {
		facts   nodeFacts
		section config.KindSection
		args    map[string][]string
		want    []string
		without []string
	}{
		"cgroup v2 needs nothing of the kubelet":        {facts: nodeFacts{resources: true}, without: []string{"KubeletConfiguration"}},
		"cgroup v1 is allowed":                          {facts: nodeFacts{cgroupV1: true, resources: true}, want: []string{"failCgroupV1: false"}, without: []string{"oomScoreAdj"}},
		"a container that may lower no score":           {want: []string{"oomScoreAdj: 0", "KubeletInUserNamespace: true"}, without: []string{"failCgroupV1"}},
		"arguments of kube-apiserver":                   {facts: nodeFacts{resources: true}, args: map[string][]string{"event-ttl": {"2h"}, "oidc-signing-algs": {"RS256", "ES256"}}, want: []string{"event-ttl: 2h", "oidc-signing-algs: RS256,ES256"}},
		"the user's volumes stay":                       {section: config.KindSection{KubeadmConfigPatches: []string{users}}, want: []string{"name: audit", "name: taskctl-store"}},
		"an old kubeadm is not asked for what is newer": {facts: nodeFacts{version: "v1.30.0"}, without: []string{"certificateValidityPeriod"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, test.section)
			c.APIServerArgs = test.args
			patches, err := c.patches(test.facts)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(patches, "---\n")
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("there is no %q in\n%s", want, text)
				}
			}
			for _, without := range test.without {
				if strings.Contains(text, without) {
					t.Errorf("there is %q in\n%s", without, text)
				}
			}
		})
	}
}

func TestCheckSection(t *testing.T) {
	for name, test := range map[string]struct {
		section config.KindSection
		want    string
	}{
		"a mount over the store's":     {config.KindSection{ExtraMounts: []config.Mount{{ContainerPath: "/taskctl/run"}}}, "extraMounts[0]"},
		"a mount over the authorities": {config.KindSection{ExtraMounts: []config.Mount{{ContainerPath: "/etc/kubernetes/pki"}}}, "extraMounts[0]"},
		"a mapping of the API server":  {config.KindSection{ExtraPortMappings: []config.PortMapping{{ContainerPort: 6443}}}, "--port"},
		"a mount beside is fine":       {config.KindSection{ExtraMounts: []config.Mount{{ContainerPath: "/etc/kubernetes/audit"}}}, ""},
		"a mapping of another is fine": {config.KindSection{ExtraPortMappings: []config.PortMapping{{ContainerPort: 30080}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckSection(test.section)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestKubeadmsOfBothVersions(t *testing.T) {
	for version, want := range map[string]bool{"v1.35.9": false, "v1.36.0": true, "v1.37.2": true, "v2.0.0": true, "": false} {
		if got := hasPeriods(version); got != want {
			t.Errorf("%q: %t", version, got)
		}
	}
}
