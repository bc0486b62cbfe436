package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"sigs.k8s.io/yaml"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
)

// `kubectl create --raw` and `kubectl replace --raw` send a file as it is,
// without a content type, and people name the object in the path, where
// Kubernetes knows no POST. The two handlers here make both work for the stored
// kinds. Reading the body is left to the one that runs after authorization.

// namedCreate is the context key of the name in the path.
type namedCreate struct{}

// withNamedCreates turns POST …/RESOURCE/NAME into POST …/RESOURCE and keeps the
// name for withRawBodies.
func withNamedCreates(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodPost {
			if collection, name, found := splitName(request.URL.Path); found {
				request = request.Clone(context.WithValue(request.Context(), namedCreate{}, name))
				request.URL.Path, request.URL.RawPath, request.RequestURI = collection, "", ""
			}
		}
		next.ServeHTTP(w, request)
	})
}

// splitName takes the name off the path of an object of a stored kind.
func splitName(path string) (collection, name string, found bool) {
	rest, found := strings.CutPrefix(path, "/apis/"+searchv1.GroupName+"/"+searchv1.GroupVersion().Version+"/")
	if !found {
		return "", "", false
	}
	words := strings.Split(rest, "/")
	for _, kind := range storedKinds() {
		if kind.Namespaced && len(words) == 4 && words[0] == "namespaces" && words[2] == kind.Resource && words[3] != "" ||
			!kind.Namespaced && len(words) == 2 && words[0] == kind.Resource && words[1] != "" {
			name = words[len(words)-1]
			return strings.TrimSuffix(path, "/"+name), name, true
		}
	}
	return "", "", false
}

// withRawBodies takes a body without a content type for JSON or YAML, whichever
// it is, and puts the name of the path into the object that is created.
func withRawBodies(next http.Handler, serializer runtime.NegotiatedSerializer, limit int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		name, named := request.Context().Value(namedCreate{}).(string)
		writes := request.Method == http.MethodPost || request.Method == http.MethodPut
		if !named && !(writes && request.Header.Get("Content-Type") == "") {
			next.ServeHTTP(w, request)
			return
		}
		body, contentType, err := rawBody(request, name, limit)
		if err != nil {
			responsewriters.ErrorNegotiated(err, serializer, searchv1.GroupVersion(), w, request)
			return
		}
		request = request.Clone(request.Context())
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		if contentType != "" {
			request.Header.Set("Content-Type", contentType)
		}
		next.ServeHTTP(w, request)
	})
}

// rawBody returns the body to go on with, and its content type.
func rawBody(request *http.Request, name string, limit int64) (body []byte, contentType string, err error) {
	body, err = io.ReadAll(io.LimitReader(request.Body, limit+1))
	if err != nil {
		return nil, "", apierrors.NewBadRequest("the request's body can't be read: " + err.Error())
	}
	if int64(len(body)) > limit {
		return nil, "", apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit))
	}
	contentType = request.Header.Get("Content-Type")
	if contentType == "" {
		contentType = runtime.ContentTypeYAML
		if bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
			contentType = runtime.ContentTypeJSON
		}
	}
	if name == "" {
		return body, contentType, nil
	}
	body, err = nameObject(body, name)
	return body, runtime.ContentTypeJSON, err
}

// nameObject sets the object's name, which must not be another one.
func nameObject(body []byte, name string) ([]byte, error) {
	var object map[string]any
	if err := yaml.Unmarshal(body, &object); err != nil {
		return nil, apierrors.NewBadRequest("the request's body is neither JSON nor YAML: " + err.Error())
	}
	metadata, isMap := object["metadata"].(map[string]any)
	if object == nil || object["metadata"] != nil && !isMap {
		return nil, apierrors.NewBadRequest("the request's body is no object with metadata")
	}
	if metadata == nil {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	if given := metadata["name"]; given != nil && given != "" && given != name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%v) does not match the name on the URL (%s)", given, name))
	}
	metadata["name"] = name
	return json.Marshal(object)
}
