package supervisor

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/control"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/lifecycle"
)

// limit bounds every wait: a start has been seen to take a minute on a machine
// that compiles at the same time.
const limit = 3 * time.Minute

// running is an appliance that runs in the test's process.
type running struct {
	*Appliance
	t      *testing.T
	stop   context.CancelFunc
	result chan error
	faults map[string]chan error // sending to one makes the component panic, or return the error

	mu     sync.Mutex
	events []Event
}

// start runs an appliance until it is ready.
func start(t *testing.T, options Options) *running {
	t.Helper()
	folder, err := datadir.Open(t.TempDir(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Prepare(); err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, result: make(chan error, 1), faults: map[string]chan error{}}
	ready := make(chan struct{})
	options.Folder, options.Name, options.Wait = folder, "test", limit
	options.OnEvent = func(event Event) {
		r.mu.Lock()
		r.events = append(r.events, event)
		r.mu.Unlock()
		if event.Kind == ReadyEvent {
			close(ready)
		}
	}
	if r.Appliance, err = New(options); err != nil {
		t.Fatal(err)
	}
	r.decorate = r.breakable
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() { r.result <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		folder.Close()
	})
	select {
	case <-ready:
	case err := <-r.result:
		t.Fatalf("it ended before it was ready: %v", err)
	case <-time.After(limit):
		t.Fatal("it is not ready in time")
	}
	return r
}

// breakable makes components end as a test asks for.
func (r *running) breakable(components []lifecycle.Component) []lifecycle.Component {
	for i := range components {
		component, fault := &components[i], make(chan error)
		r.faults[component.Name] = fault
		run := component.Run
		component.Run = func(ctx context.Context, ready func()) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- run(ctx, ready) }()
			select {
			case err := <-done:
				return err
			case err := <-fault:
				cancel()
				<-done
				if err == nil {
					panic("injected by the test")
				}
				return err
			}
		}
	}
	return components
}

// end stops it in order and returns its error.
func (r *running) end() error {
	r.t.Helper()
	r.stop()
	return r.wait()
}

func (r *running) wait() error {
	r.t.Helper()
	select {
	case err := <-r.result:
		return err
	case <-time.After(limit):
		r.t.Fatal("it has not stopped in time")
		return nil
	}
}

func (r *running) component(name string) control.Component {
	r.t.Helper()
	for _, component := range r.Status().Components {
		if component.Name == name {
			return component
		}
	}
	r.t.Fatalf("there is no component %q", name)
	return control.Component{}
}

// admin is a client of the administrator.
func (r *running) admin() *http.Client {
	r.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", r.folder.Kubeconfig())
	if err != nil {
		r.t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(client.CloseIdleConnections)
	return client
}

// answers says whether a request is answered with the code.
func (r *running) answers(client *http.Client, method, path, body string, code int) bool {
	request, err := http.NewRequest(method, r.server+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == code
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(limit)
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("this did not come: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestPartsThatEndAreBackWithinSeconds(t *testing.T) {
	r := start(t, Options{})
	client := r.admin()
	const combined = "/apis/search.task.example.example.com/v1/combinedtasks"
	// A dry run passes through both webhooks.
	const tasks = "/apis/example.example.com/v1/namespaces/default/tasks?dryRun=All"
	const task = `{"apiVersion":"example.example.com/v1","kind":"Task","metadata":{"generateName":"a-"},"spec":{"priority":1,"deadline":"2035-01-01T00:00:00Z"}}`
	for _, test := range []struct {
		component string
		fault     error // nil is a panic
		answers   func() bool
	}{
		{Aggregator, nil, func() bool { return r.answers(client, http.MethodGet, combined, "", http.StatusOK) }},
		{Aggregator, errors.New("returned"), func() bool { return r.answers(client, http.MethodGet, combined, "", http.StatusOK) }},
		{Webhooks, nil, func() bool { return r.answers(client, http.MethodPost, tasks, task, http.StatusCreated) }},
		{Operator, nil, func() bool { return r.component(Operator).State == "ready" }},
		{Registration, errors.New("returned"), func() bool { return r.answers(client, http.MethodGet, combined, "", http.StatusOK) }},
	} {
		before := r.component(test.component).Restarts
		r.faults[test.component] <- test.fault
		began := time.Now()
		eventually(t, test.component+" is ready again", func() bool {
			now := r.component(test.component)
			return now.Restarts > before && now.State == "ready"
		})
		eventually(t, test.component+" answers again", test.answers)
		t.Logf("%s was back after %s", test.component, time.Since(began))
		last := r.component(test.component).LastError
		if test.fault == nil && last != "it panicked: injected by the test" || test.fault != nil && last != "returned" {
			t.Errorf("%s: its last error is %q", test.component, last)
		}
	}
	if text := read(t, r.folder.Logs(), Aggregator); !strings.Contains(text, "panic: injected by the test") || !strings.Contains(text, "appliance_test.go") {
		t.Error("the panic's stack is not in the component's log")
	}
	eventually(t, "ready as a whole", func() bool { return r.State() == control.Ready })
	if err := r.end(); err != nil {
		t.Errorf("faults that a restart mended are returned: %v", err)
	}
}

func TestFatalExitInsideKubernetesIsAnOrderedStop(t *testing.T) {
	r := start(t, Options{Without: Removable()})
	go klog.Fatal("the test wants to end the process")
	err := r.wait()
	var blamed *lifecycle.Error
	if !errors.As(err, &blamed) || blamed.Component != APIServer || !strings.Contains(err.Error(), "the test wants to end the process") {
		t.Fatalf("error %v", err)
	}
	if blamed.LogFile != filepath.Join(r.folder.Logs(), "apiserver.log") {
		t.Errorf("log %q", blamed.LogFile)
	}
	log := read(t, r.folder.Logs(), "supervisor")
	if stopped, stopping := strings.Index(log, "name=apiserver state=failed"), strings.Index(log, "name=storage state=stopping"); stopped < 0 || stopping < stopped {
		t.Error("storage did not stop after the API server")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.events[len(r.events)-1]; last.Kind != FailedEvent || last.Component != APIServer || last.LogFile != blamed.LogFile {
		t.Errorf("the last event is %+v", last)
	}
}

func TestPartThatMayNotBeRestartedStopsEverything(t *testing.T) {
	r := start(t, Options{Without: Removable()})
	r.faults[Storage] <- errors.New("disk full")
	err := r.wait()
	if err == nil || !strings.HasPrefix(err.Error(), "storage: disk full (log: "+filepath.Join(r.folder.Logs(), "storage.log")+")") {
		t.Errorf("error %v", err)
	}
}

func TestWhatCannotBeStarted(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"a component that can't be left out": {Options{Without: []string{Storage}}, `"storage" can't be left out`},
		"parts without what they work on":    {Options{Without: []string{Manifests}}, `"operator" works on what "manifests" installs`},
		"an unknown storage":                 {Options{Storage: config.FromSpec("oracle://u:s3cret@h")}, `the storage "oracle" is not known`},
		"a storage that doesn't parse":       {Options{Storage: config.FromSpec("postgres://u:s3cret@h:port/db")}, "doesn't parse"},
		"a flag of ours":                     {Options{APIServerArgs: map[string][]string{"etcd-servers": {"x"}}}, "etcd-servers"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(test.options); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

func read(t *testing.T, logs, component string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(logs, component+".log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
