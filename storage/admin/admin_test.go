package admin_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/admin"
	"github.com/taskctl-dev/taskctl/storage/backup"
	"github.com/taskctl-dev/taskctl/storage/routing"
)

func open(t *testing.T) *storage.Store {
	t.Helper()
	store, err := storage.Open(t.Context(), storage.Config{DataDir: t.TempDir(), Topology: storage.Topology{
		Backends: []storage.Backend{{Name: "main", Spec: "sqlite://main.db"}, {Name: "tasks", Spec: "sqlite://tasks.db"}},
		Rules:    []routing.Rule{{Backend: "tasks", Prefix: "/registry/tasks/"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func put(store *storage.Store, t *testing.T, key, value string, lease int64) (int64, error) {
	response, err := store.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{
		{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte(value), Lease: lease}}},
	}})
	if err != nil {
		return 0, err
	}
	return response.Header.Revision, nil
}

// churn writes, deletes, revokes and compacts until it is told to stop.
func churn(store *storage.Store, t *testing.T, stop <-chan struct{}) error {
	for i := int64(1); ; i++ {
		if _, err := store.LeaseGrant(t.Context(), &pb.LeaseGrantRequest{ID: i, TTL: 1000}); err != nil {
			return err
		}
		var last int64
		for j := range 5 {
			key := fmt.Sprintf("/registry/%s/k%d", []string{"tasks", "pods"}[j%2], (i+int64(j))%17)
			var err error
			if last, err = put(store, t, key, fmt.Sprint(i), i*int64(j%3/2)); err != nil {
				return err
			}
		}
		if _, err := store.LeaseRevoke(t.Context(), &pb.LeaseRevokeRequest{ID: i}); err != nil {
			return err
		}
		if i%4 == 0 {
			if _, err := store.Compact(t.Context(), &pb.CompactionRequest{Revision: last}); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
				return err
			}
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

// What is written, revoked and compacted meanwhile is no breach, and a backup
// of the moment is whole.
func TestAStoreThatRunsIsClean(t *testing.T) {
	store := open(t)
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- churn(store, t, stop) }()
	for range 15 {
		report, err := admin.Verify(t.Context(), store)
		if err != nil {
			t.Error(err)
		}
		if !report.Clean() {
			t.Errorf("%+v", report.Breaches)
		}
		var file bytes.Buffer
		written, err := admin.Backup(t.Context(), store, &file, "test")
		if err != nil {
			t.Error(err)
		}
		if read, err := backup.Check(&file); err != nil || read != written {
			t.Errorf("%+v, %v; written %+v", read, err, written)
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAStoreIsAskedOverHTTP(t *testing.T) {
	store := open(t)
	for _, key := range []string{"/registry/tasks/a", "/registry/tasks/b", "/registry/pods/c"} {
		if _, err := put(store, t, key, "value", 0); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(admin.Handler(store, "v1", slog.New(slog.DiscardHandler)))
	defer server.Close()
	client, err := admin.NewClient(storage.Endpoint{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	routes, err := client.Routes(t.Context())
	if err != nil || fmt.Sprint(routes.Rules) != "[{prefix=/registry/tasks/ tasks 2} {default main 1}]" || routes.Revision != 4 {
		t.Errorf("%+v, %v", routes, err)
	}
	e, err := client.Explain(t.Context(), "/registry/tasks/b", false)
	if err != nil || e.Rule != "prefix=/registry/tasks/" || e.Number != 1 || e.Backend != "tasks" || e.Kind != "sqlite" || *e.Row != (admin.Row{ID: 2, Create: 3, Mod: 3, Version: 1}) {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err = client.Explain(t.Context(), "/registry/", true); err != nil || e.Keys != 3 || fmt.Sprint(e.Backends) != "[main tasks]" || e.Row != nil {
		t.Errorf("%+v, %v", e, err)
	}
	if report, err := client.Verify(t.Context()); err != nil || !report.Clean() || len(report.Backends) != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	var file bytes.Buffer
	if err := client.Backup(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	if summary, err := backup.Check(&file); err != nil || summary.Rows != 3 || summary.Program != "v1" {
		t.Errorf("%+v, %v", summary, err)
	}

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+admin.Prefix+"backup", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Origin", "http://example.com")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("a browser's request is answered %s", response.Status)
	}
	if _, err := admin.NewClient(storage.Endpoint{URL: "ftp://x"}); err == nil || !strings.Contains(err.Error(), "unix:///PATH") {
		t.Errorf("error %v", err)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if client, err = admin.NewClient(storage.Endpoint{URL: other.URL}); err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Routes(t.Context()); !errors.Is(err, admin.ErrNotServed) {
		t.Errorf("what is no store: %v", err)
	}
}
