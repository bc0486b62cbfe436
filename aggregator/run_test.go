package aggregator_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taskctl-dev/taskctl/aggregator"
	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
)

// TestMain checks that no run of the aggregator leaves anything behind.
func TestMain(m *testing.M) {
	// klog starts this one once in a process.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		// Ends by itself three seconds after a list, whether the cache runs or not.
		goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"))
}

// TestAggregator starts one control plane and runs the aggregator against it,
// many times.
func TestAggregator(t *testing.T) {
	c := newControl(t)
	for name, test := range map[string]func(*testing.T, control){
		"serves what it should":                      testServes,
		"runs again in the same process":             testRunsAgain,
		"stops in spite of clients":                  testStops,
		"says why it does not start":                 testStartErrors,
		"opens its port last":                        testOpensPortLast,
		"recognises nobody but the front proxy":      testAuthentication,
		"follows the front proxy's rotation":         testFrontProxyRotation,
		"serves a renewed certificate":               testServingRotation,
		"accepts tokens that the API server accepts": testTokens,
		"asks for the rights on both halves":         testRights,
		"joins as things happen":                     testJoins,
		"feeds informers":                            testInformers,
		"lists in pages":                             testPages,
		"needs no more rights than it has":           testOwnRights,
		"serves a thousand watches":                  testManyWatches,
		"waits for no slow reader":                   testSlowReader,
		"stores kinds of its own":                    testStored,
		"searches in details":                        testDetails,
		"serves kinds of others":                     testOwnKinds,
	} {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

func testServes(t *testing.T, c control) {
	s := c.run(t, c.options(t))
	admin := c.asAdmin(t)
	for path, contains := range map[string]string{
		"/apis":                                 `"name":"search.task.example.example.com"`,
		"/apis/search.task.example.example.com": `"preferredVersion":{"groupVersion":"search.task.example.example.com/v1"`,
		"/apis/search.task.example.example.com/v1": `{"name":"combinedtasks","singularName":"combinedtask","namespaced":true,"kind":"CombinedTask","verbs":["get","list","watch"],"shortNames":["ctk"]`,
		"/openapi/v2": `"com.example.example.task.search.v1.CombinedTask"`,
		"/openapi/v3": "apis/search.task.example.example.com/v1",
		"/openapi/v3/apis/search.task.example.example.com/v1": `"x-kubernetes-group-version-kind":[{"group":"search.task.example.example.com","kind":"CombinedTask","version":"v1"}]`,
		"/readyz":     "ok",
		"/livez":      "ok",
		"/healthz":    "ok",
		combinedtasks: `"kind":"CombinedTaskList"`,
	} {
		got := s.get(t, admin, path)
		if err := expectCode(path, got, 200); err != nil {
			t.Error(err)
		}
		if !strings.Contains(got.body, contains) {
			t.Errorf("%s: %s is not in %.2000s", path, contains, got.body)
		}
		if id := got.header.Get(aggregator.RunIDHeader); id != "test-run" {
			t.Errorf("%s: run id %q", path, id)
		}
	}
	verbose := s.get(t, admin, "/readyz?verbose")
	for _, check := range []string{"front-proxy", "resource-versions", "combinedtasks"} {
		if !strings.Contains(verbose.body, "[+]"+check+" ok") {
			t.Errorf("no check %s: %s", check, verbose.body)
		}
	}
	for accept, want := range map[string]struct {
		code int
		part string
	}{
		// As Kubernetes' own controllers ask.
		"application/vnd.kubernetes.protobuf,application/json": {200, `"kind":"CombinedTaskList"`},
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1": {200, "PartialObjectMetadataList"},
		"application/json;as=Table;g=meta.k8s.io;v=v1": {200, `"kind":"Table"`},
		"application/yaml":                    {200, "kind: CombinedTaskList"},
		"application/vnd.kubernetes.protobuf": {406, "NotAcceptable"},
	} {
		got := s.get(t, header{admin, "Accept", accept}, combinedtasks)
		if got.code != want.code || !strings.Contains(got.body, want.part) {
			t.Errorf("Accept %s: %d %.300s", accept, got.code, got.body)
		}
	}
	missing := s.get(t, admin, in("default")+"/nope")
	if missing.status.Reason != metav1.StatusReasonNotFound || missing.header.Get(aggregator.RunIDHeader) != "test-run" {
		t.Errorf("an unknown name: %+v", missing)
	}
	for query, code := range map[string]int{
		"?fieldSelector=spec.other%3Dx": 400, "?labelSelector=%3D%3D": 400, "?continue=x": 400, "?limit=x": 400,
		"?resourceVersion=x": 400, "?resourceVersion=7": 410,
	} {
		if err := expectCode(query, s.get(t, admin, combinedtasks+query), code); err != nil {
			t.Error(err)
		}
	}
}

// resourceVersion of a list of everything.
func (s *server) resourceVersion(t *testing.T) uint64 {
	t.Helper()
	var list searchv1.CombinedTaskList
	must(t, json.Unmarshal([]byte(s.get(t, s.asAdmin(t), combinedtasks).body), &list))
	number, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
	must(t, err)
	return number
}

func testRunsAgain(t *testing.T, c control) {
	var last uint64
	for round := range 3 {
		s := c.run(t, c.options(t))
		version := s.resourceVersion(t)
		if version <= last {
			t.Errorf("round %d: version %d after %d", round, version, last)
		}
		if round > 0 {
			old := strconv.FormatUint(last, 10)
			if err := expectCode("list at a version of an earlier run", s.get(t, c.asAdmin(t), combinedtasks+"?resourceVersion="+old), 410); err != nil {
				t.Error(err)
			}
			watch := s.get(t, c.asAdmin(t), combinedtasks+"?watch=1&timeoutSeconds=5&resourceVersion="+old)
			if !strings.Contains(watch.body, `"type":"ERROR"`) || !strings.Contains(watch.body, `"code":410`) {
				t.Errorf("watch from a version of an earlier run: %s", watch.body)
			}
		}
		last = version
		s.stop()
	}
}

func testStops(t *testing.T, c control) {
	idle := c.run(t, c.options(t))
	idle.get(t, c.asAdmin(t), combinedtasks) // leaves an HTTP/2 connection open
	if took := idle.stop(); took > 900*time.Millisecond {
		t.Errorf("idle, it took %s to stop", took)
	}

	s := c.run(t, c.options(t))
	transport := c.asAdmin(t)
	for range 20 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.address+combinedtasks+"?watch=1", nil)
		must(t, err)
		response, err := transport.RoundTrip(request)
		must(t, err)
		defer response.Body.Close()
	}
	// One that connects and says nothing.
	silent, err := net.Dial("tcp", s.address)
	must(t, err)
	defer silent.Close()
	if took := s.stop(); took > 3500*time.Millisecond {
		t.Errorf("with open watches it took %s to stop", took)
	}
	if connection, err := net.DialTimeout("tcp", s.address, time.Second); err == nil {
		connection.Close()
		t.Error("the port is still open")
	}
}

func testStartErrors(t *testing.T, c control) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	nobody := c.identity(t, "operator")
	for name, test := range map[string]struct {
		change func(*aggregator.Options)
		limit  time.Duration
		want   string
	}{
		"no config":                       {func(o *aggregator.Options) { o.Config = nil }, patience, "no Config"},
		"no listener":                     {func(o *aggregator.Options) { o.Listen = nil }, patience, "no Listen"},
		"no certificate":                  {func(o *aggregator.Options) { o.CertFile = "" }, patience, "no CertFile"},
		"a certificate that is not there": {func(o *aggregator.Options) { o.CertFile = "/nonexistent.crt" }, patience, "/nonexistent.crt"},
		"a taken port": {func(o *aggregator.Options) {
			o.Listen = func(context.Context) (net.Listener, error) { return net.Listen("tcp", taken.Addr().String()) }
		}, patience, "address already in use"},
		"missing rights": {func(o *aggregator.Options) { o.Config = nobody }, 2 * time.Second, "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), test.limit)
			defer cancel()
			options := c.options(t)
			test.change(&options)
			err := aggregator.Run(ctx, options, func() { t.Error("it says that it is ready") })
			if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

func testOpensPortLast(t *testing.T, c control) {
	opened := make(chan struct{})
	options := c.options(t)
	options.Config = c.identity(t, "operator") // who may not read Events
	options.Listen = func(context.Context) (net.Listener, error) {
		close(opened)
		return nil, errors.New("opened too early")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := aggregator.Run(ctx, options, func() {})
	select {
	case <-opened:
		t.Errorf("the port was opened while nothing was known: %v", err)
	default:
	}
}
