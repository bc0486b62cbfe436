// Package etcdserver starts etcd servers for tests as processes of their own,
// so that they can be killed. The process is the test's own program once more,
// which has to call [Child] in its TestMain.
package etcdserver

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/taskctl-dev/taskctl/test/dbserver"
)

// Variables by which a child is told what to be.
const (
	dirVariable     = "TASKCTL_TEST_ETCD_DIR"
	nameVariable    = "TASKCTL_TEST_ETCD_NAME"
	clientVariable  = "TASKCTL_TEST_ETCD_CLIENT"
	clusterVariable = "TASKCTL_TEST_ETCD_CLUSTER" // name=peer,…
)

// Child is an etcd until it is killed, if this process was started to be one;
// otherwise it does nothing and returns false.
func Child() bool {
	dir := os.Getenv(dirVariable)
	if dir == "" {
		return false
	}
	if err := serve(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return true
}

func serve(dir string) error {
	config := embed.NewConfig()
	config.Dir = dir
	config.Name = os.Getenv(nameVariable)
	config.InitialCluster = os.Getenv(clusterVariable)
	// A killed process loses nothing that it has written, synced or not.
	config.UnsafeNoFsync = true
	config.TickMs, config.ElectionMs = 50, 500
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	client, err := url.Parse(os.Getenv(clientVariable))
	if err != nil {
		return err
	}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	for member := range strings.SplitSeq(config.InitialCluster, ",") {
		name, address, _ := strings.Cut(member, "=")
		if name != config.Name {
			continue
		}
		peer, err := url.Parse(address)
		if err != nil {
			return err
		}
		config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	}
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	return <-server.Err()
}

// Start starts an etcd of one member.
func Start(t testing.TB) *dbserver.Server {
	t.Helper()
	return StartCluster(t, 1)[0]
}

// StartCluster starts an etcd of several members and waits until all answer.
func StartCluster(t testing.TB, members int) []*dbserver.Server {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var cluster []string
	for i := range members {
		cluster = append(cluster, fmt.Sprintf("m%d=http://%s", i, freeAddress(t)))
	}
	servers := make([]*dbserver.Server, members)
	for i := range servers {
		servers[i] = dbserver.NewProgram(t, func(dir, address string) *exec.Cmd {
			command := exec.Command(program)
			command.Env = append(os.Environ(),
				dirVariable+"="+filepath.Join(dir, "etcd"), nameVariable+"="+fmt.Sprintf("m%d", i),
				clientVariable+"=http://"+address, clusterVariable+"="+strings.Join(cluster, ","))
			return command
		}, answers)
		servers[i].DSN = "http://" + servers[i].Address
		servers[i].Launch()
	}
	for _, s := range servers {
		s.Await()
	}
	return servers
}

// answers asks for a linearizable read.
func answers(address string) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + address}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = client.Get(ctx, "health", clientv3.WithCountOnly())
	return err
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
