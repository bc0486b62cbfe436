package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	apiService = "v1.search.task.example.example.com"
	combined   = "/apis/search.task.example.example.com/v1/combinedtasks"
)

// kill ends the process as a crash does, and checks what others see of it.
func (s *shell) kill(up *background) {
	s.t.Helper()
	up.signal(syscall.SIGKILL)
	<-up.exited
	if status := s.status(); status.code != 3 {
		s.t.Errorf("status after the kill: %+v", status)
	}
}

// checkWhole checks that every part answers, in this run.
func checkWhole(t *testing.T, s *shell) {
	t.Helper()
	if out := s.kubectl("get", "--raw", combined); !strings.Contains(out, `"kind":"CombinedTaskList"`) {
		t.Errorf("combinedtasks: %q", out)
	}
	if out := s.kubectl("create", "-f", s.taskFile(), "-o", `jsonpath={.metadata.labels.example\.example\.com/priority}`); out != "3" {
		t.Errorf("the defaulting webhook set the label to %q", out)
	}
}

// taskFile is the manifest of a Task, with another name each time.
func (s *shell) taskFile() string {
	s.t.Helper()
	task := `{"apiVersion":"example.example.com/v1","kind":"Task","metadata":{"generateName":"check-"},"spec":{"priority":3,"deadline":"2035-01-01T00:00:00Z"}}`
	file := filepath.Join(s.home, "task.json")
	if err := os.WriteFile(file, []byte(task), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

func TestKilledAtEachPhaseOfTheStart(t *testing.T) {
	s := newShell(t)
	for _, phase := range []string{
		"certificates is ready", "storage is ready", "apiserver is ready", "manifests is ready", "aggregator is ready", "Press ^C to stop",
	} {
		up := s.start("up")
		up.await(phase)
		s.kill(up)
	}
	// The registrations of the last run say that everything is available, and
	// nothing is behind them.
	up := s.must(0, "up", "-d")
	if !strings.Contains(up.Stderr, "is ready after") {
		t.Errorf("stderr %q", up.Stderr)
	}
	checkWhole(t, s)
	s.must(0, "down")
	if left := tree(t, filepath.Join(s.state("taskctl"), "run")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestKilledAtEachPhaseOfTheStop(t *testing.T) {
	s := newShell(t)
	log := filepath.Join(s.state("taskctl"), "logs", "supervisor.log")
	for _, phase := range []string{
		"name=registration state=stopping", "name=operator state=stopping", "name=apiserver state=stopping", "name=storage state=stopping",
	} {
		up := s.start("up")
		up.await("Press ^C to stop")
		before := strings.Count(readFile(t, log), phase)
		up.signal(syscall.SIGTERM)
		eventually(t, phase, func() bool { return strings.Count(readFile(t, log), phase) > before })
		s.kill(up)
	}
	s.must(0, "up", "-d", "-q")
	checkWhole(t, s)
	s.must(0, "down")
}

func TestStaleRegistrationsOfAKilledRunAreRemoved(t *testing.T) {
	s := newShell(t)
	up := s.start("up")
	up.await("Press ^C to stop")
	if out := s.kubectl("get", "apiservice", apiService, "-o", "name"); !strings.Contains(out, apiService) {
		t.Fatalf("it is not registered: %q", out)
	}
	s.kill(up)
	s.must(0, "up", "-d", "-q", "--without", "webhooks,aggregator,registration")
	if out := s.kubectl("get", "apiservices,mutatingwebhookconfigurations,validatingwebhookconfigurations", "-l", "app.kubernetes.io/managed-by=taskctl", "-o", "name"); out != "" {
		t.Errorf("still registered: %q", out)
	}
	s.must(0, "down")
}

func TestRegistrationsGoBeforeWhatTheyPointAt(t *testing.T) {
	s := newShell(t)
	s.must(0, "up", "-d", "-q")
	s.must(0, "down")
	log := readFile(t, filepath.Join(s.state("taskctl"), "logs", "supervisor.log"))
	at := func(event string) int {
		i := strings.Index(log, event)
		if i < 0 {
			t.Fatalf("%q is not in the log", event)
		}
		return i
	}
	gone := at("name=registration state=stopped")
	for _, later := range []string{"webhooks", "aggregator", "operator", "apiserver", "storage"} {
		if at("name="+later+" state=stopping") < gone {
			t.Errorf("%s began to stop before the registrations were gone", later)
		}
	}
	if at("name=storage state=stopping") < at("name=apiserver state=stopped") {
		t.Error("storage began to stop before the API server had stopped")
	}
}

func TestNothingAcknowledgedIsLostByAKill(t *testing.T) {
	s := newShell(t)
	up := s.start(append([]string{"up"}, bare...)...)
	up.await("Press ^C to stop")
	client := s.client()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()

	var acknowledged sync.Map
	var count atomic.Int64
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("written-%d-%d", w, i)
				_, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
				if err != nil {
					return // the kill
				}
				acknowledged.Store(name, true)
				count.Add(1)
			}
		})
	}
	eventually(t, "300 writes", func() bool { return count.Load() > 300 })
	s.kill(up)
	writers.Wait()

	s.must(0, append([]string{"up", "-d", "-q"}, bare...)...)
	list, err := s.client().CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]bool{}
	for _, item := range list.Items {
		stored[item.Name] = true
	}
	acknowledged.Range(func(name, _ any) bool {
		if !stored[name.(string)] {
			t.Errorf("%s was acknowledged and is lost", name)
		}
		return true
	})
	t.Logf("%d acknowledged, %d stored", count.Load(), len(stored))
	s.must(0, "down")
}

// client is a client of the appliance's administrator.
func (s *shell) client() *kubernetes.Clientset {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.state("taskctl"), "kubeconfig"))
	if err != nil {
		s.t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}
