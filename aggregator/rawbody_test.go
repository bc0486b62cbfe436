package aggregator

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer"
)

const (
	clusterTasks = "/apis/search.task.example.example.com/v1/clustertasks"
	customTasks  = "/apis/search.task.example.example.com/v1/namespaces/a/customtasks"
)

func TestTheNameIsTakenOffThePathOfACreate(t *testing.T) {
	for _, test := range []struct{ method, path, wantPath, wantName string }{
		{"POST", clusterTasks + "/x", clusterTasks, "x"},
		{"POST", customTasks + "/x", customTasks, "x"},
		{"POST", clusterTasks, clusterTasks, ""},
		{"POST", clusterTasks + "/", clusterTasks + "/", ""},
		{"POST", clusterTasks + "/x/status", clusterTasks + "/x/status", ""},
		{"PUT", clusterTasks + "/x", clusterTasks + "/x", ""},
		{"POST", "/apis/search.task.example.example.com/v1/customtasks/x", "/apis/search.task.example.example.com/v1/customtasks/x", ""},
		{"POST", "/apis/search.task.example.example.com/v1/namespaces/a/combinedtasks/x", "/apis/search.task.example.example.com/v1/namespaces/a/combinedtasks/x", ""},
		{"POST", "/apis/other/v1/clustertasks/x", "/apis/other/v1/clustertasks/x", ""},
	} {
		var path, name string
		handler := withNamedCreates(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
			path = request.URL.Path
			name, _ = request.Context().Value(namedCreate{}).(string)
		}))
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(test.method, test.path, nil))
		if path != test.wantPath || name != test.wantName {
			t.Errorf("%s %s: got %s and %q", test.method, test.path, path, name)
		}
	}
}

func TestRawBodies(t *testing.T) {
	scheme, err := newScheme(nil)
	if err != nil {
		t.Fatal(err)
	}
	var gotType, gotBody string
	chain := withNamedCreates(withRawBodies(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		gotType, gotBody = request.Header.Get("Content-Type"), string(body)
	}), serializer.NewCodecFactory(scheme), 100))
	for name, test := range map[string]struct {
		method, path, contentType, body string
		wantType, wantBody              string
		wantCode                        int
	}{
		"JSON":                          {"POST", clusterTasks, "", ` {"a":1}`, "application/json", ` {"a":1}`, 200},
		"YAML":                          {"PUT", clusterTasks + "/x", "", "a: 1", "application/yaml", "a: 1", 200},
		"with a type":                   {"POST", clusterTasks, "text/x", "a: 1", "text/x", "a: 1", 200},
		"a patch":                       {"PATCH", clusterTasks + "/x", "", "a: 1", "", "a: 1", 200},
		"the name is added":             {"POST", clusterTasks + "/x", "", "a: 1", "application/json", `{"a":1,"metadata":{"name":"x"}}`, 200},
		"the name is there":             {"POST", clusterTasks + "/x", "application/yaml", "metadata: {name: x}", "application/json", `{"metadata":{"name":"x"}}`, 200},
		"another name":                  {"POST", clusterTasks + "/x", "", `{"metadata":{"name":"y"}}`, "", "", 400},
		"no metadata":                   {"POST", clusterTasks + "/x", "", `{"metadata":"y"}`, "", "", 400},
		"no object":                     {"POST", clusterTasks + "/x", "", "- 1", "", "", 400},
		"nothing":                       {"POST", clusterTasks + "/x", "", "", "", "", 400},
		"neither":                       {"POST", clusterTasks + "/x", "", "{", "", "", 400},
		"too large":                     {"POST", clusterTasks, "", strings.Repeat("x", 101), "", "", 413},
		"too large with a name":         {"POST", clusterTasks + "/x", "application/json", strings.Repeat("x", 101), "", "", 413},
		"as large as can be, no object": {"POST", clusterTasks, "", strings.Repeat("x", 100), "application/yaml", strings.Repeat("x", 100), 200},
	} {
		gotType, gotBody = "", ""
		request := httptest.NewRequest(test.method, test.path, strings.NewReader(test.body))
		if test.contentType != "" {
			request.Header.Set("Content-Type", test.contentType)
		}
		recorder := httptest.NewRecorder()
		chain.ServeHTTP(recorder, request)
		if recorder.Code != test.wantCode || gotType != test.wantType || gotBody != test.wantBody {
			t.Errorf("%s: got %d, %q, %s; %s", name, recorder.Code, gotType, gotBody, recorder.Body)
		}
		if recorder.Code >= 400 && !strings.Contains(recorder.Body.String(), `"kind":"Status"`) {
			t.Errorf("%s: the error is no Status: %s", name, recorder.Body)
		}
	}
}
