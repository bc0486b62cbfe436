package combinedtask

import (
	"fmt"
	"testing"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
)

// BenchmarkList lists Tasks with 3 Events each. The time per object should not
// depend on how many there are, neither in the answer nor beside it.
func BenchmarkList(b *testing.B) {
	for _, size := range []struct{ all, answer int }{{100, 100}, {1_000, 1_000}, {10_000, 10_000}, {10_000, 100}, {100_000, 100}} {
		b.Run(fmt.Sprintf("all=%d/answer=%d", size.all, size.answer), func(b *testing.B) {
			f := synced(b, 0)
			f.fill(size.all)
			r := NewREST(f.view, always(nil), everything())
			ctx := request(b, "", "")
			b.ReportAllocs()
			for b.Loop() {
				list, err := r.List(ctx, &metainternalversion.ListOptions{Limit: int64(size.answer)})
				must(b, err)
				if got := len(list.(*searchv1.CombinedTaskList).Items); got != size.answer {
					b.Fatalf("got %d objects", got)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size.answer), "ns/object")
		})
	}
}

// BenchmarkEvent is what one more Event costs, watches left out.
func BenchmarkEvent(b *testing.B) {
	f := synced(b, 0)
	f.fill(10_000)
	second := 10
	for b.Loop() {
		second++
		must(b, f.events.Update(taskEvent("a", "e0-0", "u0", second)))
	}
}

func (f fixture) fill(count int) {
	var tasks, events []any
	for i := range count {
		tasks = append(tasks, task("a", fmt.Sprintf("t%d", i), fmt.Sprintf("u%d", i), i+1))
		for n := range 3 {
			events = append(events, taskEvent("a", fmt.Sprintf("e%d-%d", i, n), fmt.Sprintf("u%d", i), n))
		}
	}
	must(f.t, f.tasks.Replace(tasks, ""))
	must(f.t, f.events.Replace(events, ""))
}
