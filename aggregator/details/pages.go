package details

import (
	"encoding/base64"
	"encoding/json"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/taskctl-dev/taskctl/aggregator/fulltext"
	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

const (
	// keepResults is how long the rest of a search can be fetched.
	keepResults = 5 * time.Minute
	// maxResults bounds how many searches are kept. The one that would go first
	// is dropped.
	maxResults = 64
)

// search is what a request asks for. The pages of one search are the same
// request.
type search struct {
	namespace, query, labels, fields string
}

// result is the answer to a search, of which clients fetch one page after the
// other. It never changes: ranks do, with each Task that is written.
type result struct {
	search  search
	version string
	query   *fulltext.Query
	matches []fulltext.Match[*taskv1.Task]
	until   time.Time
}

// results are those whose pages were not all fetched.
type results struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	last uint64
	kept map[uint64]*result
}

// token is what a continue parameter says. It grants nothing: who uses it is
// checked like everybody, and it fits only the search that it is of.
type token struct {
	Version string `json:"v"`
	Result  uint64 `json:"n"`
	Run     int64  `json:"t"` // tells the results of another run of the program apart
	Offset  int    `json:"o"`
}

const tokenVersion = "details/v1"

func (t token) encode() string {
	data, err := json.Marshal(t)
	if err != nil { // a struct of strings and integers
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// keep keeps a result and returns its number.
func (r *results) keep(kept *result) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
	r.last++
	kept.until = r.clock.Now().Add(keepResults)
	r.kept[r.last] = kept
	// Numbers and times grow together.
	for number := range r.kept {
		if len(r.kept) > maxResults && number <= r.last-maxResults {
			delete(r.kept, number)
		}
	}
	return r.last
}

// drop forgets what is over.
func (r *results) drop() {
	now := r.clock.Now()
	for number, kept := range r.kept {
		if !now.Before(kept.until) {
			delete(r.kept, number)
		}
	}
}

// find returns the result that a continue parameter belongs to.
func (r *results) find(encoded string, run int64, wanted search) (*result, token, error) {
	var t token
	data, err := base64.RawURLEncoding.DecodeString(encoded)
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil || t.Version != tokenVersion || t.Offset < 0 {
		return nil, t, apierrors.NewBadRequest("continue key is not valid: it is not one of this resource's tokens")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
	kept, found := r.kept[t.Result]
	if t.Run != run || !found {
		return nil, t, apierrors.NewResourceExpired("The provided continue parameter is too old: start the search again without it.")
	}
	if kept.search != wanted || t.Offset > len(kept.matches) {
		return nil, t, apierrors.NewBadRequest("continue key is not valid: it is of another search")
	}
	return kept, t, nil
}
