package robustness

import (
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/etcd/tests/v3/robustness/report"
)

// refusal is in the error of a request that was not carried out because its
// database is known to be down.
const refusal = "storage backend "

// withoutRefused leaves out the requests that the store refused for certain.
// The model would take them for requests of unknown outcome, and while a
// database is down there are more of them than it can check. If one of them was
// carried out all the same, what it wrote has no origin and the history is
// illegal.
func withoutRefused(reports []report.ClientReport) (kept []report.ClientReport, refused int) {
	for _, r := range reports {
		before := len(r.KeyValue)
		r.KeyValue = slices.DeleteFunc(slices.Clone(r.KeyValue), func(op porcupine.Operation) bool {
			return strings.Contains(op.Output.(model.MaybeEtcdResponse).Error, refusal)
		})
		refused += before - len(r.KeyValue)
		kept = append(kept, r)
	}
	return kept, refused
}
