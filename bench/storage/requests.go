package main

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// The requests are those of kube-apiserver, which are the only ones that kine
// answers: writes guarded by the revision that was read, lists by pages.

var errConflict = errors.New("a guarded write did not succeed")

func key(i int) string { return fmt.Sprintf("%sobject-%08d", prefix, i) }

func value() string {
	random := make([]byte, valueSize)
	for i := range random {
		random[i] = byte('a' + i%26)
	}
	return string(random)
}

func create(ctx context.Context, client *clientv3.Client, key, value string) (int64, error) {
	response, err := client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, value)).Commit()
	if err == nil && !response.Succeeded {
		err = errConflict
	}
	if err != nil {
		return 0, err
	}
	return response.Header.Revision, nil
}

func (b *bench) create(ctx context.Context, client, i int) (int, error) {
	revision, err := create(ctx, b.clients[client], key(i), value())
	b.revisions[i].Store(revision)
	return 1, err
}

func (b *bench) update(ctx context.Context, client, i int) (int, error) {
	response, err := b.clients[client].Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key(i)), "=", b.revisions[i].Load())).
		Then(clientv3.OpPut(key(i), value())).
		Else(clientv3.OpGet(key(i))).Commit()
	if err == nil && !response.Succeeded {
		err = errConflict
	}
	if err != nil {
		return 0, err
	}
	b.revisions[i].Store(response.Header.Revision)
	return 1, nil
}

func (b *bench) remove(ctx context.Context, client, i int) (int, error) {
	response, err := b.clients[client].Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key(i)), "=", b.revisions[i].Load())).
		Then(clientv3.OpDelete(key(i))).
		Else(clientv3.OpGet(key(i))).Commit()
	if err == nil && !response.Succeeded {
		err = errConflict
	}
	return 1, err
}

func (b *bench) get(ctx context.Context, client, i int) (int, error) {
	response, err := b.clients[client].Get(ctx, key(i))
	if err == nil && (len(response.Kvs) != 1 || len(response.Kvs[0].Value) != valueSize) {
		err = fmt.Errorf("get of %s found %d keys", key(i), len(response.Kvs))
	}
	return 1, err
}

func (b *bench) count(ctx context.Context, client, _ int) (int, error) {
	response, err := b.clients[client].Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err == nil && response.Count != int64(b.keys) {
		err = fmt.Errorf("count is %d, want %d", response.Count, b.keys)
	}
	return 1, err
}

// list reads everything by pages, all at the revision of the first one.
func (b *bench) list(ctx context.Context, client, _ int) (int, error) {
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	var revision int64
	objects := 0
	for {
		options := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithLimit(pageSize)}
		if revision != 0 {
			options = append(options, clientv3.WithRev(revision))
		}
		page, err := b.clients[client].Get(ctx, from, options...)
		if err != nil {
			return objects, err
		}
		objects += len(page.Kvs)
		if revision == 0 {
			revision = page.Header.Revision
		}
		if !page.More {
			if objects != b.keys {
				err = fmt.Errorf("a list has %d objects, want %d", objects, b.keys)
			}
			return objects, err
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}
