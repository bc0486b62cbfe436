package cli

import (
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestPartsAlone runs operator and aggregated API as processes of their own, as
// a real cluster does, against an appliance that leaves them out.
func TestPartsAlone(t *testing.T) {
	s := newShell(t)
	s.must(0, append([]string{"up", "-d", "-q"}, bare...)...)
	pki := filepath.Join(s.state("taskctl"), "pki")

	webhooks := freeAddress(t)
	operator := s.start("operator", "run", "--kubeconfig", s.identity("operator"), "--leader-election=false",
		"--webhook-address", webhooks, "--tls-cert-file", filepath.Join(pki, "webhooks-serving.crt"), "--tls-key-file", filepath.Join(pki, "webhooks-serving.key"))
	operator.await("msg=ready")
	eventually(t, "the webhooks' answer", func() bool { return answers("https://" + webhooks + "/healthz") })
	task := `{"apiVersion":"example.example.com/v1","kind":"Task","metadata":{"name":"observed"},"spec":{"priority":3,"deadline":"2035-01-01T00:00:00Z"}}`
	file := filepath.Join(s.home, "task.json")
	if err := os.WriteFile(file, []byte(task), 0o600); err != nil {
		t.Fatal(err)
	}
	s.kubectl("create", "-f", file)
	s.kubectl("wait", "task/observed", "--for=condition=Ready", "--timeout=60s")

	address := freeAddress(t)
	aggregator := s.start("aggregator", "run", "--kubeconfig", s.identity("aggregator"), "--address", address,
		"--tls-cert-file", filepath.Join(pki, "aggregator-serving.crt"), "--tls-key-file", filepath.Join(pki, "aggregator-serving.key"),
		"--storage-endpoint", "unix://"+filepath.Join(s.state("taskctl"), "run", "etcd.sock"))
	aggregator.await("msg=ready")
	if !answers("https://" + address + "/readyz") {
		t.Error("/readyz of the aggregated API is not 200")
	}

	for _, part := range []*background{aggregator, operator} {
		part.signal(syscall.SIGTERM)
		if code := part.wait(limit); code != 0 {
			t.Errorf("code %d: %s", code, part.stderr)
		}
		if part.stdout.String() != "" {
			t.Errorf("stdout %q", part.stdout)
		}
	}
	s.must(0, "down")

	s.fails(2, []string{"operator", "run", "--webhook-address", ":0"}, "--tls-cert-file")
	s.fails(2, []string{"aggregator", "run"}, "--tls-cert-file")
	s.fails(2, []string{"aggregator", "run", "--tls-cert-file=c", "--tls-key-file=k", "--storage-cafile=f"}, "--storage-endpoint")
	s.fails(1, []string{"operator", "run"}, "there is no cluster", "--kubeconfig")
}

// identity is a kubeconfig of one of the appliance's own identities.
func (s *shell) identity(name string) string {
	s.t.Helper()
	admin, err := clientcmd.LoadFromFile(s.kubeconfig())
	if err != nil {
		s.t.Fatal(err)
	}
	pki := filepath.Join(s.state("taskctl"), "pki")
	admin.AuthInfos["taskctl"] = &clientcmdapi.AuthInfo{
		ClientCertificate: filepath.Join(pki, name+".crt"), ClientKey: filepath.Join(pki, name+".key"),
	}
	file := filepath.Join(s.home, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*admin, file); err != nil {
		s.t.Fatal(err)
	}
	return file
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// answers says whether a URL is answered with 200, by whoever.
func answers(url string) bool {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is not what is tested
	}}
	defer client.CloseIdleConnections()
	response, err := client.Get(url)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func TestStorageServe(t *testing.T) {
	s := newShell(t)
	folder := filepath.Join(s.home, "store")
	serve := s.start("storage", "serve", "--data-dir", folder, "--listen", "http://127.0.0.1:0")
	serve.await("http://127.0.0.1:")
	url := strings.TrimSpace(serve.stdout.String())
	eventually(t, "health of "+url, func() bool { return answers(url + "/health") })
	// The folder has an owner.
	s.fails(1, []string{"storage", "serve", "--data-dir", folder, "--listen", "http://127.0.0.1:0"}, "is in use by process")
	serve.signal(syscall.SIGTERM)
	if code := serve.wait(limit); code != 0 {
		t.Errorf("code %d: %s", code, serve.stderr)
	}
	s.fails(2, []string{"storage", "serve", "--storage", "oracle://u:s3cret@h"}, `"oracle" is not known`)
}

func TestStorageIsKept(t *testing.T) {
	s := newShell(t)
	args := append([]string{"up", "-d", "-q"}, bare...)
	s.must(0, append(args, "--storage", "sqlite")...)
	s.kubectl("create", "configmap", "in-sqlite")
	s.fails(1, append(args, "--storage", "etcd"), `storage is "sqlite", asked for is "etcd"`)
	s.must(0, "down")
	s.fails(1, append(args, "--storage", "etcd"), "are stored in sqlite", "--recreate")
	s.must(0, args...)
	if out := s.kubectl("get", "configmaps", "-o", "name"); !strings.Contains(out, "in-sqlite") {
		t.Errorf("%q", out)
	}
	s.must(0, "down")
	if _, err := os.Stat(filepath.Join(s.state("taskctl"), "store.db")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(s.state("taskctl"), "etcd")); !os.IsNotExist(err) {
		t.Errorf("there is an etcd, too: %v", err)
	}
}

// TestPasswordsAreNowhere starts with an address that has a password in it and
// a server that is not there, and looks for the password.
func TestPasswordsAreNowhere(t *testing.T) {
	s := newShell(t)
	const password = "s3cretword"
	command := s.command("up", "-d", "--wait", "5s", "-o", "json")
	command.Env = append(command.Env, "TASKCTL_STORAGE=postgres://me:"+password+"@127.0.0.1:1/db")
	up := s.startCommand(command)
	seen := false
	eventually(t, "the end of up", func() bool {
		for _, pid := range processesOf(s.home) {
			seen = seen || strings.Contains(commandLine(pid), password)
		}
		select {
		case <-up.exited:
			return true
		default:
			return false
		}
	})
	if up.wait(limit) != 1 || seen {
		t.Errorf("code %d; in an argument list: %t; %s", up.ProcessState.ExitCode(), seen, up.stderr)
	}
	for _, text := range []string{up.stdout.String(), up.stderr.String(), s.run("status", "-o", "json").Stdout} {
		if strings.Contains(text, password) {
			t.Errorf("the password stands in %q", text)
		}
	}
	for _, path := range tree(t, s.home) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && strings.Contains(readFile(t, path), password) {
			t.Errorf("the password stands in %s", path)
		}
	}
}
