package kind

import (
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/pki"
)

const (
	// socketMount is where the node sees the folder of the store's socket.
	// That a container has it, from our folder, is what makes it ours.
	socketMount = "/taskctl/run"
	// pkiMount is where kubeadm looks for authorities that are there already.
	pkiMount = "/etc/kubernetes/pki"
	// apiServerPort is the API server's port in the node.
	apiServerPort = "6443"
	// certificateLife is how long the certificates that kubeadm makes live, nine
	// years: nothing renews them, and a node may be kept for long. Their
	// authority lives ten.
	certificateLife = "78840h"
)

// newConfig is the kind configuration of the node: the user's section, and
// ours, which wins where both say something.
func (c *Cluster) newConfig(facts nodeFacts) (*v1alpha4.Cluster, error) {
	patches, err := c.patches(facts)
	if err != nil {
		return nil, err
	}
	node := v1alpha4.Node{
		Role:        v1alpha4.ControlPlaneRole,
		Labels:      c.Section.Labels,
		ExtraMounts: c.mounts(),
	}
	for _, mapping := range c.Section.ExtraPortMappings {
		node.ExtraPortMappings = append(node.ExtraPortMappings, v1alpha4.PortMapping{
			ContainerPort: int32(mapping.ContainerPort), HostPort: int32(mapping.HostPort),
			ListenAddress: mapping.ListenAddress, Protocol: v1alpha4.PortMappingProtocol(mapping.Protocol),
		})
	}
	for _, mount := range c.Section.ExtraMounts {
		node.ExtraMounts = append(node.ExtraMounts, v1alpha4.Mount{HostPath: mount.HostPath, ContainerPath: mount.ContainerPath, Readonly: mount.ReadOnly})
	}
	return &v1alpha4.Cluster{
		Name:  c.Node.Cluster,
		Nodes: []v1alpha4.Node{node},
		Networking: v1alpha4.Networking{
			APIServerAddress: "127.0.0.1",
			APIServerPort:    int32(c.Port),
			// Those that are in the store make the network of the new node too.
			DisableDefaultCNI: c.Used,
		},
		KubeadmConfigPatches:    append(append([]string{}, c.Section.KubeadmConfigPatches...), patches...),
		ContainerdConfigPatches: c.Section.ContainerdConfigPatches,
	}, nil
}

// mounts are the store's socket, in its folder because the socket itself is a
// new one at every start, and the files that make identities outlive the node.
func (c *Cluster) mounts() []v1alpha4.Mount {
	mounts := []v1alpha4.Mount{{HostPath: c.Node.SocketDir, ContainerPath: socketMount, Readonly: true}}
	add := func(host, name string) {
		mounts = append(mounts, v1alpha4.Mount{HostPath: host, ContainerPath: pkiMount + "/" + name, Readonly: true})
	}
	for name, files := range map[string]pki.Files{"ca": c.PKI.CAFiles(), "front-proxy-ca": c.PKI.FrontProxyCAFiles(), "sa": c.PKI.ServiceAccountFiles()} {
		certificate := ".crt"
		if name == "sa" {
			certificate = ".pub"
		}
		add(files.Cert, name+certificate)
		add(files.Key, name+".key")
	}
	return mounts
}

// patches are ours to kubeadm's configuration. They have no apiVersion: one
// that doesn't match the node's version would be left out in silence.
func (c *Cluster) patches(facts nodeFacts) ([]string, error) {
	volumes, err := c.userVolumes()
	if err != nil {
		return nil, err
	}
	args := map[string]string{
		// The API server goes to endpoints by itself, without waiting for
		// kube-proxy.
		"enable-aggregator-routing": "true",
	}
	for name, values := range c.APIServerArgs {
		args[name] = strings.Join(values, ",")
	}
	all := []map[string]any{{
		"kind":                      "ClusterConfiguration",
		"certificateValidityPeriod": certificateLife,
		"etcd": map[string]any{"external": map[string]any{
			"endpoints": []string{"unix://" + socketMount + "/" + filepath.Base(c.Socket)},
		}},
		"apiServer": map[string]any{
			"extraArgs": args,
			"extraVolumes": append(volumes, map[string]any{
				"name": "taskctl-store", "hostPath": socketMount, "mountPath": socketMount, "readOnly": true, "pathType": "Directory",
			}),
		},
	}}
	if !facts.periods {
		delete(all[0], "certificateValidityPeriod")
	}
	kubelet := map[string]any{"kind": "KubeletConfiguration"}
	if facts.cgroupV1 {
		kubelet["failCgroupV1"] = false
	}
	if !facts.resources {
		// Without CAP_SYS_RESOURCE nobody may lower a score or raise a limit;
		// the kubelet goes on without in this mode.
		kubelet["oomScoreAdj"] = 0
		kubelet["featureGates"] = map[string]bool{"KubeletInUserNamespace": true}
	}
	if len(kubelet) > 1 {
		all = append(all, kubelet)
	}
	var texts []string
	for _, patch := range all {
		text, err := yaml.Marshal(patch)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}

// userVolumes are the API server's volumes of the user's patches: a list in a
// later patch replaces one of an earlier.
func (c *Cluster) userVolumes() ([]any, error) {
	var volumes []any
	for _, patch := range c.Section.KubeadmConfigPatches {
		var document struct {
			Kind      string `yaml:"kind"`
			APIServer struct {
				ExtraVolumes []any `yaml:"extraVolumes"`
			} `yaml:"apiServer"`
		}
		if err := yaml.Unmarshal([]byte(patch), &document); err != nil {
			return nil, fmt.Errorf("cluster.kind.kubeadmConfigPatches: %w", err)
		}
		if document.Kind == "ClusterConfiguration" && len(document.APIServer.ExtraVolumes) > 0 {
			volumes = document.APIServer.ExtraVolumes
		}
	}
	return volumes, nil
}

// CheckSection refuses what would take the place of our own mounts.
func CheckSection(section config.KindSection) error {
	for i, mount := range section.ExtraMounts {
		for _, ours := range []string{filepath.Dir(socketMount), pkiMount} {
			if mount.ContainerPath == ours || strings.HasPrefix(mount.ContainerPath, ours+"/") {
				return fmt.Errorf("cluster.kind.extraMounts[%d]: %s in the node is taskctl's", i, ours)
			}
		}
	}
	for i, mapping := range section.ExtraPortMappings {
		if fmt.Sprint(mapping.ContainerPort) == apiServerPort {
			return fmt.Errorf("cluster.kind.extraPortMappings[%d]: port %s is the API server's, whose port on this machine is set by --port", i, apiServerPort)
		}
	}
	return nil
}
