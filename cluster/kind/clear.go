package kind

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/taskctl-dev/taskctl/storage"
)

// clearOldNode deletes from a store what belonged to a node of that name that
// is gone: the Node, its lease and its disks, and the Pods that ran on it. A
// new node of that name would otherwise take them for its own. In an empty
// store there is nothing to do.
//
// It works on the store itself, because the only API server is in the node.
func clearOldNode(ctx context.Context, endpoint storage.Endpoint, node string) (err error) {
	config := clientv3.Config{Context: ctx, Endpoints: []string{endpoint.URL}, DialTimeout: askLimit, Logger: zap.NewNop()}
	if endpoint.CAFile != "" || endpoint.CertFile != "" {
		info := transport.TLSInfo{TrustedCAFile: endpoint.CAFile, CertFile: endpoint.CertFile, KeyFile: endpoint.KeyFile}
		if config.TLS, err = info.ClientConfig(); err != nil {
			return fmt.Errorf("clearing what belonged to the old node: %w", err)
		}
	}
	client, err := clientv3.New(config)
	if err != nil {
		return fmt.Errorf("clearing what belonged to the old node: %w", err)
	}
	defer client.Close() //nolint:errcheck // its requests have been answered
	keys := []string{
		"/registry/minions/" + node,
		"/registry/leases/kube-node-lease/" + node,
		"/registry/csinodes/" + node,
	}
	pods, err := podsOf(ctx, client, node)
	if err != nil {
		return fmt.Errorf("clearing what belonged to the old node: %w", err)
	}
	for _, key := range append(keys, pods...) {
		if _, err := client.Delete(ctx, key); err != nil {
			return fmt.Errorf("clearing what belonged to the old node: %w", err)
		}
	}
	return nil
}

// podsPage bounds what is read at once; a Pod takes a few kilobytes.
const podsPage = 200

// podsOf are the keys of the Pods that are bound to the node. One that can't be
// read, because its value is encrypted, is taken for one of them: there is no
// other node that it could have run on.
func podsOf(ctx context.Context, client *clientv3.Client, node string) ([]string, error) {
	const prefix = "/registry/pods/"
	var keys []string
	end := clientv3.GetPrefixRangeEnd(prefix)
	for from := prefix; ; {
		page, err := client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(podsPage))
		if err != nil {
			return nil, err
		}
		for _, item := range page.Kvs {
			object, _, err := scheme.Codecs.UniversalDeserializer().Decode(item.Value, nil, nil)
			pod, ok := object.(*corev1.Pod)
			if err != nil || !ok || pod.Spec.NodeName == node {
				keys = append(keys, string(item.Key))
			}
		}
		if !page.More || len(page.Kvs) == 0 {
			return keys, nil
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}
