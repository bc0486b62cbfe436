package etcddb_test

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	etcdkubernetes "go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"

	"github.com/taskctl-dev/taskctl/storage/etcddb"
)

// TestAnEtcdThatWasLeftServesOnItsOwn reads the etcd directly, by the client
// that kube-apiserver uses, after the store has left it.
func TestAnEtcdThatWasLeftServesOnItsOwn(t *testing.T) {
	endpoint := newEtcd(t)
	must[*clientv3.PutResponse](t)(dial(t, endpoint).Put(t.Context(), "/registry/pods/default/adopted", "0"))
	s := openStore(t, endpoint)
	for i := range 150 {
		s.do(put(fmt.Sprintf("/registry/pods/default/%03d", i), fmt.Sprint(i)))
	}
	lease, err := s.LeaseGrant(t.Context(), &pb.LeaseGrantRequest{TTL: 600})
	if err != nil {
		t.Fatal(err)
	}
	event := put("/registry/events/default/e", "leased")
	event.GetRequestPut().Lease = lease.ID
	s.do(event)
	s.do(remove("/registry/pods/default/007", ""))
	shown := s.all()
	s.stop()

	database, err := etcddb.Open(t.Context(), etcddb.Config{Endpoints: []string{endpoint}, Term: term})
	if err != nil {
		t.Fatal(err)
	}
	// As if other backends had brought the store further.
	past := shown.Header.Revision + 1000
	left, err := database.Leave(t.Context(), past)
	if err != nil {
		t.Fatal(err)
	}
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
	if left.Keys != shown.Count || left.Leases != 1 || left.Revision <= past {
		t.Errorf("leaving says %+v; the store had %d keys at revision %d", left, shown.Count, past)
	}

	client, err := etcdkubernetes.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	list, err := client.Kubernetes.List(t.Context(), "/registry/", etcdkubernetes.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if list.Revision <= past || list.Count != shown.Count {
		t.Fatalf("the etcd has %d keys at revision %d", list.Count, list.Revision)
	}
	for i, kv := range list.Kvs {
		was := shown.Kvs[i]
		if string(kv.Key) != string(was.Key) || string(kv.Value) != string(was.Value) || kv.Lease != was.Lease || kv.ModRevision <= past {
			t.Errorf("%s is %v, the store had %v", was.Key, kv, was)
		}
	}
	all := must[*clientv3.GetResponse](t)(client.KV.Get(t.Context(), "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly()))
	if all.Count != shown.Count {
		t.Errorf("%d keys are left in the etcd, the store had %d", all.Count, shown.Count)
	}
	left2 := must[*clientv3.LeaseTimeToLiveResponse](t)(client.TimeToLive(t.Context(), clientv3.LeaseID(lease.ID), clientv3.WithAttachedKeys()))
	if left2.TTL < 300 || len(left2.Keys) != 1 {
		t.Errorf("the lease is %+v", left2)
	}
	updated, err := client.Kubernetes.OptimisticPut(t.Context(), "/registry/pods/default/001", []byte("new"), list.Kvs[2].ModRevision, etcdkubernetes.PutOptions{})
	if err != nil || !updated.Succeeded || updated.Revision <= list.Revision {
		t.Errorf("an update of %s: %+v, %v", list.Kvs[2].Key, updated, err)
	}
	// And it can be adopted again.
	s = openStore(t, endpoint)
	if again := s.all(); again.Count != shown.Count || again.Header.Revision < updated.Revision {
		t.Errorf("adopted again it has %d keys at revision %d", again.Count, again.Header.Revision)
	}
}
