package combinedtask

import (
	"testing"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
)

// TestAListCostsWhatItAnswers counts work by what is allocated: it grows with
// the answer, and not with what there is beside it. Tasks and Events are read
// from nowhere.
func TestAListCostsWhatItAnswers(t *testing.T) {
	work := func(all int, limit int64) float64 {
		f := synced(t, 0)
		f.fill(all)
		reads := always(nil)
		r := NewREST(f.view, reads, everything())
		ctx := request(t, "", "")
		allocations := testing.AllocsPerRun(20, func() {
			list, err := r.List(ctx, &metainternalversion.ListOptions{Limit: limit})
			must(t, err)
			items := list.(*searchv1.CombinedTaskList).Items
			if len(items) != int(limit) || len(items[limit-1].Status.Events) != 3 {
				t.Fatalf("%d items, the last with %d Events", len(items), len(items[limit-1].Status.Events))
			}
		})
		if reads.reads != 0 {
			t.Errorf("a list reads %d Tasks", reads.reads)
		}
		return allocations
	}
	few, beside, many := work(1_000, 100), work(10_000, 100), work(10_000, 1_000)
	if beside > few*1.2 {
		t.Errorf("100 of 10,000 cost %v allocations, 100 of 1,000 cost %v", beside, few)
	}
	if many > few*10*1.2 {
		t.Errorf("1,000 cost %v allocations, 100 cost %v", many, few)
	}
}
