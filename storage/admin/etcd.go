package admin

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// etcdName is what the only backend of an etcd is called.
const etcdName = "etcd"

// RoutesOfEtcd is ListRoutes of an etcd that keeps everything by itself.
func RoutesOfEtcd(ctx context.Context, client *clientv3.Client, endpoint string) (Routes, error) {
	count := func() (*clientv3.GetResponse, error) {
		return client.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())
	}
	before, err := count()
	if err != nil {
		return Routes{}, fmt.Errorf("count etcd's keys: %w", err)
	}
	select {
	case <-time.After(measured):
	case <-ctx.Done():
		return Routes{}, ctx.Err()
	}
	now, err := count()
	if err != nil {
		return Routes{}, fmt.Errorf("count etcd's keys: %w", err)
	}
	status, err := client.Status(ctx, endpoint)
	if err != nil {
		return Routes{}, fmt.Errorf("ask etcd for its size: %w", err)
	}
	return Routes{
		Revision: now.Header.Revision,
		Rules:    []Rule{{Rule: defaultRule, Backend: etcdName, Keys: now.Count}},
		Backends: []BackendUse{{
			Name: etcdName, Kind: etcdName, Keys: int(now.Count), Bytes: status.DbSize, InUse: status.DbSizeInUse, Revision: now.Header.Revision,
			WritesPerSecond: float64(now.Header.Revision-before.Header.Revision) / measured.Seconds(),
		}},
	}, nil
}

// ExplainEtcd is Explain of an etcd that keeps everything by itself.
func ExplainEtcd(ctx context.Context, client *clientv3.Client, key string, prefix bool) (Explanation, error) {
	e := Explanation{Key: key, Rule: defaultRule, Backend: etcdName, Kind: etcdName}
	found, err := client.Get(ctx, key)
	if err != nil {
		return e, fmt.Errorf("look the key up in etcd: %w", err)
	}
	for _, kv := range found.Kvs {
		e.Row = &Row{Create: kv.CreateRevision, Mod: kv.ModRevision, Version: kv.Version, Lease: kv.Lease}
	}
	if prefix {
		below, err := client.Get(ctx, key, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return e, fmt.Errorf("count the keys in etcd: %w", err)
		}
		e.Keys, e.Backends = below.Count, []string{etcdName}
	}
	return e, nil
}
