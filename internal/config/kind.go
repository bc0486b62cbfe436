package config

import (
	"path/filepath"
	"strconv"

	"go.yaml.in/yaml/v3"
)

func (k *KindSection) read(r reader) error {
	if r.isNull() {
		return nil
	}
	k.Line = r.node.Line
	return r.fields(map[string]func(reader) error{
		"extraMounts":             func(r reader) error { return r.list(k.readMount) },
		"extraPortMappings":       func(r reader) error { return r.list(k.readPortMapping) },
		"labels":                  k.readLabels,
		"kubeadmConfigPatches":    func(r reader) error { return r.list(k.readPatch) },
		"containerdConfigPatches": func(r reader) error { return r.texts(&k.ContainerdConfigPatches) },
	})
}

func (k *KindSection) readMount(r reader) error {
	var mount Mount
	err := r.fields(map[string]func(reader) error{
		"hostPath":      func(r reader) error { return r.text(&mount.HostPath) },
		"containerPath": func(r reader) error { return r.text(&mount.ContainerPath) },
		"readOnly":      func(r reader) error { return r.boolean(&mount.ReadOnly) },
	})
	switch {
	case err != nil:
		return err
	case !filepath.IsAbs(mount.HostPath):
		return r.errorf("hostPath must be an absolute path")
	case !filepath.IsAbs(mount.ContainerPath):
		return r.errorf("containerPath must be an absolute path")
	}
	k.ExtraMounts = append(k.ExtraMounts, mount)
	return nil
}

func (k *KindSection) readPortMapping(r reader) error {
	var mapping PortMapping
	err := r.fields(map[string]func(reader) error{
		"containerPort": func(r reader) error { return r.port(&mapping.ContainerPort) },
		"hostPort":      func(r reader) error { return r.port(&mapping.HostPort) },
		"listenAddress": func(r reader) error { return r.text(&mapping.ListenAddress) },
		"protocol":      func(r reader) error { return r.oneOf(&mapping.Protocol, "TCP", "UDP", "SCTP") },
	})
	if err == nil && mapping.ContainerPort == 0 {
		return r.errorf("containerPort is missing")
	}
	k.ExtraPortMappings = append(k.ExtraPortMappings, mapping)
	return err
}

func (k *KindSection) readLabels(r reader) error {
	if r.node.Kind != yaml.MappingNode {
		return r.errorf("it must be a mapping from labels to values")
	}
	k.Labels = map[string]string{}
	for i := 0; i+1 < len(r.node.Content); i += 2 {
		name, value := r.node.Content[i].Value, ""
		if err := r.child(name, r.node.Content[i+1]).text(&value); err != nil {
			return err
		}
		k.Labels[name] = value
	}
	return nil
}

// readPatch reads one patch, which must be YAML that says what it patches: kind
// leaves out a patch that fits nothing without a word.
func (k *KindSection) readPatch(r reader) error {
	var patch string
	if err := r.text(&patch); err != nil {
		return err
	}
	var head struct {
		Kind string         `yaml:"kind"`
		Etcd map[string]any `yaml:"etcd"`
	}
	switch err := yaml.Unmarshal([]byte(patch), &head); {
	case err != nil:
		return r.errorf("the patch is no YAML: %v", err)
	case head.Kind == "":
		return r.errorf("the patch says no kind, like ClusterConfiguration or KubeletConfiguration")
	case len(head.Etcd) > 0:
		return r.errorf("the patch sets etcd, which taskctl sets: where objects are stored is said by storage")
	}
	k.KubeadmConfigPatches = append(k.KubeadmConfigPatches, patch)
	return nil
}

func (r reader) texts(into *[]string) error {
	return r.list(func(r reader) error {
		var text string
		err := r.text(&text)
		*into = append(*into, text)
		return err
	})
}

func (r reader) port(into *int) error {
	port, err := strconv.Atoi(r.node.Value)
	if err != nil || port < 1 || port > 65535 {
		return r.errorf("it must be a port, 1 to 65535")
	}
	*into = port
	return nil
}
