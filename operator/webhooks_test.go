package operator

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
)

// webhookServer is a running RunWebhooks and a client that trusts it.
type webhookServer struct {
	url    string
	client *http.Client
	stop   func() error
}

// testCertificate is one for 127.0.0.1, and a pool that trusts it.
func testCertificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	certificate := selfSigned(t)
	pool := x509.NewCertPool()
	pool.AddCert(certificate.Leaf)
	return *certificate, pool
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func startWebhooks(t *testing.T, change func(*WebhookOptions)) *webhookServer {
	t.Helper()
	certificate, pool := testCertificate(t)
	return startWebhooksWith(t, certificate, pool, change)
}

func startWebhooksWith(t *testing.T, certificate tls.Certificate, pool *x509.CertPool, change func(*WebhookOptions)) *webhookServer {
	t.Helper()
	options := WebhookOptions{
		Listener:       listen(t),
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil },
		Clock:          testingclock.NewFakePassiveClock(noon),
	}
	if change != nil {
		change(&options)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- RunWebhooks(ctx, options, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		t.Fatalf("ended before it was ready: %v", err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	server := &webhookServer{
		url:    "https://" + options.Listener.Addr().String(),
		client: &http.Client{Transport: transport},
	}
	stopped := false
	server.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		defer transport.CloseIdleConnections()
		return <-ended
	}
	t.Cleanup(func() {
		if err := server.stop(); err != nil {
			t.Errorf("stopped with %v", err)
		}
	})
	return server
}

// review sends an admission request over TLS.
func (s *webhookServer) review(t *testing.T, path string, operation admissionv1.Operation, object, old string) *admissionv1.AdmissionResponse {
	t.Helper()
	request := &admissionv1.AdmissionRequest{UID: "request-1", Operation: operation, Namespace: "default", Name: "paint"}
	if object != "" {
		request.Object = runtime.RawExtension{Raw: []byte(object)}
	}
	if old != "" {
		request.OldObject = runtime.RawExtension{Raw: []byte(old)}
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  request,
	})
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.client.Post(s.url+path, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v: %s", response.Status, err, content)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(content, &review); err != nil {
		t.Fatal(err)
	}
	if review.Response == nil || review.Response.UID != request.UID {
		t.Fatalf("not an answer to this request: %s", content)
	}
	return review.Response
}

func taskJSON(metadata, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"example.example.com/v1","kind":"Task","metadata":{"name":"paint","namespace":"default"%s},"spec":{%s}}`, metadata, spec)
}

const deleting = `,"deletionTimestamp":"2026-06-01T11:00:00Z","finalizers":["example.example.com/finalizer"]`

func TestDefaultingWebhook(t *testing.T) {
	server := startWebhooks(t, nil)
	valid := `"priority":0,"deadline":"2030-01-01T00:00:00Z"`
	right := `,"labels":{"example.example.com/priority":"0","example.example.com/deadline":"1893456000"}`
	tests := map[string]struct {
		object string
		patch  []string // parts of the patch; none means that there is no patch
	}{
		"a Task without labels": {
			object: taskJSON("", valid),
			patch:  []string{`"path":"/metadata/labels"`, `"example.example.com/priority":"0"`, `"example.example.com/deadline":"1893456000"`},
		},
		"a wrong label": {
			object: taskJSON(`,"labels":{"a":"b","example.example.com/priority":"7","example.example.com/deadline":"1893456000"}`, valid),
			patch:  []string{`{"op":"replace","path":"/metadata/labels/example.example.com~1priority","value":"0"}`},
		},
		"a deadline in a zone of its own": {
			object: taskJSON("", `"priority":1,"deadline":"2030-01-01T01:00:00.5+01:00"`),
			patch:  []string{`"example.example.com/deadline":"1893456000"`},
		},
		"the right labels":                 {object: taskJSON(right, valid)},
		"a Task that is being deleted":     {object: taskJSON(deleting, valid)},
		"a deadline that is no time":       {object: taskJSON("", `"priority":1,"deadline":"tomorrow"`)},
		"a priority that is no number":     {object: taskJSON("", `"priority":"high","deadline":"2030-01-01T00:00:00Z"`)},
		"a priority that is left to check": {object: taskJSON("", `"priority":11`), patch: []string{`"example.example.com/priority":"11"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			response := server.review(t, PathDefaultTask, admissionv1.Create, test.object, "")
			if !response.Allowed {
				t.Fatalf("refused: %v", response.Result)
			}
			if test.patch == nil && len(response.Patch) > 0 {
				t.Errorf("patched with %s", response.Patch)
			}
			for _, part := range test.patch {
				if !strings.Contains(string(response.Patch), part) {
					t.Errorf("%s is not in the patch %s", part, response.Patch)
				}
			}
			if strings.Contains(string(response.Patch), "status") || strings.Contains(string(response.Patch), "/spec") {
				t.Errorf("the patch touches more than labels: %s", response.Patch)
			}
		})
	}
}

func TestValidatingWebhook(t *testing.T) {
	server := startWebhooks(t, nil)
	ahead := taskJSON("", `"priority":1,"deadline":"2030-01-01T00:00:00Z","taskState":"Pending"`)
	past := taskJSON("", `"priority":1,"deadline":"2020-01-01T00:00:00Z","taskState":"Pending"`)
	broken := `"priority":99,"deadline":"2020-01-01T00:00:00Z","taskState":"Pending"`
	tests := map[string]struct {
		operation   admissionv1.Operation
		object, old string
		refused     string // part of the message
		warned      bool
	}{
		"created":                              {operation: admissionv1.Create, object: ahead},
		"created with a deadline in the past":  {operation: admissionv1.Create, object: past, warned: true},
		"moved into the past":                  {operation: admissionv1.Update, object: past, old: ahead, warned: true},
		"changed otherwise after the deadline": {operation: admissionv1.Update, object: taskJSON("", `"priority":2,"deadline":"2020-01-01T00:00:00Z","taskState":"Pending"`), old: past},
		"created against the rules":            {operation: admissionv1.Create, object: taskJSON("", broken), refused: "spec.priority"},
		"changed to break the rules":           {operation: admissionv1.Update, object: taskJSON("", broken), old: past, refused: "spec.priority"},
		"labelled though it breaks the rules":  {operation: admissionv1.Update, object: taskJSON(`,"labels":{"a":"b"}`, broken), old: taskJSON("", broken)},
		"being deleted":                        {operation: admissionv1.Update, object: taskJSON(deleting, broken), old: ahead},
		"deleted":                              {operation: admissionv1.Delete, old: taskJSON("", broken)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			response := server.review(t, PathValidateTask, test.operation, test.object, test.old)
			if response.Allowed == (test.refused != "") {
				t.Fatalf("allowed: %v, %v", response.Allowed, response.Result)
			}
			if test.refused != "" {
				if !strings.Contains(response.Result.Message, test.refused) || len(response.Result.Details.Causes) != 1 || response.Result.Details.Causes[0].Field != test.refused {
					t.Errorf("the refusal does not name %s: %+v", test.refused, response.Result)
				}
			}
			if warned := len(response.Warnings) > 0; warned != test.warned {
				t.Errorf("warnings: %q", response.Warnings)
			}
		})
	}
}

func TestWebhookServerAnswersNothingElse(t *testing.T) {
	server := startWebhooks(t, nil)
	for path, want := range map[string]int{
		PathHealthz: http.StatusOK, PathDefaultTask: http.StatusMethodNotAllowed, "/": http.StatusNotFound, "/metrics": http.StatusNotFound,
	} {
		response, err := server.client.Get(server.url + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("GET %s: %s, want %d", path, response.Status, want)
		}
	}
}

func TestWebhookServerWantsACertificateIfToldTo(t *testing.T) {
	certificate, pool := testCertificate(t)
	server := startWebhooksWith(t, certificate, pool, func(o *WebhookOptions) { o.ClientCAs = pool })
	if response, err := server.client.Get(server.url + PathHealthz); err == nil {
		response.Body.Close()
		t.Error("a caller without a certificate was answered")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get(server.url + PathHealthz)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
}

func TestWebhooksRunAgainAndLeaveNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for range 3 {
		server := startWebhooks(t, nil)
		if response := server.review(t, PathDefaultTask, admissionv1.Create, taskJSON("", `"priority":1,"deadline":"2030-01-01T00:00:00Z"`), ""); !response.Allowed {
			t.Errorf("refused: %v", response.Result)
		}
		start := time.Now()
		if err := server.stop(); err != nil {
			t.Errorf("stopped with %v", err)
		}
		if took := time.Since(start); took >= webhookStopLimit {
			t.Errorf("stopping with nothing in flight took %v", took)
		}
		if connection, err := net.DialTimeout("tcp", strings.TrimPrefix(server.url, "https://"), time.Second); err == nil {
			connection.Close()
			t.Error("the port is still open")
		}
	}
}

// elsewhere is a listener that claims to have another address.
type elsewhere struct {
	net.Listener
	address net.Addr
}

func (e elsewhere) Addr() net.Addr { return e.address }

func TestWebhooksAreNotReadyWhileAnotherServerAnswers(t *testing.T) {
	other := httptest.NewTLSServer(http.NotFoundHandler())
	defer other.Close()
	certificate := selfSigned(t)
	err := RunWebhooks(t.Context(), WebhookOptions{
		Listener:       elsewhere{listen(t), other.Listener.Addr()},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil },
	}, func() { t.Error("it said that it was ready") })
	if err == nil || !strings.Contains(err.Error(), "another server answers") {
		t.Errorf("error is %v", err)
	}
}

func TestWebhooksSayWhatIsMissing(t *testing.T) {
	certificate, _ := testCertificate(t)
	get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil }
	closed := listen(t)
	closed.Close()
	for name, options := range map[string]WebhookOptions{
		"no listener":       {GetCertificate: get},
		"no certificate":    {Listener: listen(t)},
		"a closed listener": {Listener: closed, GetCertificate: get},
		"a certificate that can't be read": {Listener: listen(t), GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return nil, io.ErrUnexpectedEOF
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := RunWebhooks(t.Context(), options, func() { t.Error("it said that it was ready") }); err == nil {
				t.Error("there was no error")
			}
			if options.Listener != nil {
				options.Listener.Close()
			}
		})
	}
}

func TestStoppingWebhooksWhileTheyStartIsNoError(t *testing.T) {
	certificate, _ := testCertificate(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := RunWebhooks(ctx, WebhookOptions{
		Listener:       listen(t),
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil },
	}, func() {})
	if err != nil {
		t.Errorf("error is %v", err)
	}
}
