package details

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	"github.com/taskctl-dev/taskctl/aggregator/fulltext"
)

// queryParameter is the name of the parameter.
const queryParameter = "q"

// queryKey is the context key of the query.
type queryKey struct{}

// WithQuery hands the query parameter of a search to the resource.
func WithQuery(next http.Handler) http.Handler {
	prefix := "/apis/" + searchv1.GroupName + "/" + searchv1.GroupVersion().Version + "/"
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		path := request.URL.Path
		if strings.HasPrefix(path, prefix) && strings.HasSuffix(path, "/"+resourceName) {
			query := request.URL.Query().Get(queryParameter)
			request = request.WithContext(context.WithValue(request.Context(), queryKey{}, query))
		}
		next.ServeHTTP(w, request)
	})
}

// queryOf is the query of a request; "" is none.
func queryOf(ctx context.Context) string {
	query, _ := ctx.Value(queryKey{}).(string)
	return strings.TrimSpace(query)
}

// parse reads the query. The error is a 400 that names the place.
func parse(text string) (*fulltext.Query, error) {
	query, err := fulltext.Parse(text)
	if err == nil {
		return query, nil
	}
	refusal := apierrors.NewBadRequest(fmt.Sprintf("the query %s can't be read: %s", queryParameter, err))
	var syntax *fulltext.SyntaxError
	if errors.As(err, &syntax) {
		refusal.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type:    metav1.CauseTypeFieldValueInvalid,
			Field:   fmt.Sprintf("%s[%d]", queryParameter, syntax.Position),
			Message: syntax.Reason,
		}}}
	}
	return nil, refusal
}
