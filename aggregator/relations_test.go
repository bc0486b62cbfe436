package aggregator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
)

// api writes stored tasks through kube-apiserver, without kubectl's start.
type api struct {
	k      storedKind
	host   string
	client *http.Client
}

func (k storedKind) api(t *testing.T) api {
	t.Helper()
	config := k.REST()
	client, err := rest.HTTPClientFor(config)
	must(t, err)
	return api{k, config.Host, client}
}

// do sends a request about an object ("" for the collection) or a subresource.
func (a api) do(ctx context.Context, method, name, contentType, body string) (answer, error) {
	path := a.host + a.k.path()
	if name != "" {
		path += "/" + name
	}
	request, err := http.NewRequestWithContext(ctx, method, path, bytes.NewBufferString(body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Content-Type", contentType)
	response, err := a.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return answer{code: response.StatusCode, body: string(data)}, err
}

func (a api) must(t *testing.T, code int, method, name, contentType, body string) string {
	t.Helper()
	got, err := a.do(t.Context(), method, name, contentType, body)
	must(t, err)
	if err := expectCode(method+" "+name, got, code); err != nil {
		t.Error(err)
	}
	return got.body
}

const (
	jsonType  = "application/json"
	mergeType = "application/merge-patch+json"
	applyType = "application/apply-patch+yaml"
)

func (a api) create(t *testing.T, code int, name string, dependsOn ...string) string {
	t.Helper()
	return a.must(t, code, http.MethodPost, "", jsonType, a.k.object(name, dependsOn))
}

func (k storedKind) object(name string, dependsOn []string) string {
	names, err := json.Marshal(dependsOn)
	if err != nil { // a slice of strings
		panic(err)
	}
	return fmt.Sprintf(`{"apiVersion":"search.task.example.example.com/v1","kind":%q,"metadata":{"name":%q},"spec":{"priority":1,"deadline":"2099-01-02T03:04:05Z","dependsOn":%s}}`, k.name, name, names)
}

func (a api) patch(t *testing.T, code int, name, patch string) string {
	t.Helper()
	return a.must(t, code, http.MethodPatch, name, mergeType, patch)
}

// get reads one; both kinds have the fields of a ClusterTask.
func (a api) get(t *testing.T, name string) searchv1.ClusterTask {
	t.Helper()
	var task searchv1.ClusterTask
	must(t, json.Unmarshal([]byte(a.must(t, http.StatusOK, http.MethodGet, name, jsonType, "")), &task))
	return task
}

// shows waits until a task's status says this, and tells how long it took.
func (a api) shows(t *testing.T, what, name string, blockedBy string, blocked, dependents int32) time.Duration {
	t.Helper()
	start := time.Now()
	eventually(t, what, func() error {
		status := a.get(t, name).Status
		if got := strings.Join(status.BlockedBy, " "); got != blockedBy || status.BlockedByCount != blocked || status.DependentsCount != dependents {
			return fmt.Errorf("%s is blocked by %q (%d) and has %d dependents", name, got, status.BlockedByCount, status.DependentsCount)
		}
		return nil
	})
	return time.Since(start)
}

// storedCycles tries every way to write a dependency that closes a cycle.
func storedCycles(t *testing.T, k storedKind) {
	a := k.api(t)
	refused := func(body string) {
		t.Helper()
		if !strings.Contains(body, "spec.dependsOn: Invalid value") || !strings.Contains(body, "it would depend on itself: ") {
			t.Errorf("the refusal is %s", body)
		}
	}
	refused(a.create(t, 422, "x", "x"))
	a.create(t, 201, "a", "b", "later")
	a.create(t, 201, "b", "c")
	refused(a.create(t, 422, "c", "a"))
	refused(a.must(t, 422, http.MethodPost, "?dryRun=All", jsonType, k.object("c", []string{"a"})))
	a.must(t, 201, http.MethodPost, "?dryRun=All", jsonType, k.object("c", nil))
	a.create(t, 201, "c")
	if body := a.patch(t, 422, "c", `{"spec":{"dependsOn":["a"]}}`); !strings.Contains(body, "c → a → b → c") {
		t.Errorf("the refusal is %s", body)
	}
	refused(a.patch(t, 422, "c?dryRun=All", `{"spec":{"dependsOn":["a"]}}`))
	refused(a.must(t, 422, http.MethodPut, "c", jsonType, k.object("c", []string{"a"})))
	refused(a.must(t, 422, http.MethodPatch, "c?fieldManager=me&force=true", applyType, k.object("c", []string{"a"})))
	refused(a.must(t, 422, http.MethodPatch, "later?fieldManager=me", applyType, k.object("later", []string{"a"})))
	a.must(t, 200, http.MethodPatch, "c?dryRun=All", mergeType, `{"spec":{"dependsOn":["d"]}}`)
	a.create(t, 201, "d", "a") // the dry run stored nothing
	if body := a.create(t, 422, "e", "a", "a", "No_Name"); !strings.Contains(body, "spec.dependsOn[1]: Duplicate") || !strings.Contains(body, "spec.dependsOn[2]: Invalid") {
		t.Errorf("the refusal is %s", body)
	}

	// What is opened can be closed the other way round, at once.
	a.patch(t, 200, "a", `{"spec":{"dependsOn":null}}`)
	a.patch(t, 200, "c", `{"spec":{"dependsOn":["a"]}}`)
	a.must(t, 200, http.MethodDelete, "b", jsonType, "")
	a.patch(t, 200, "a", `{"spec":{"dependsOn":["b"]}}`)
	refused(a.create(t, 422, "b", "c"))
}

// storedRings has 64 clients close rings at once: each ring is closed by the
// last of its writes, and that must be refused, whichever it is.
func storedRings(t *testing.T, k storedKind) {
	const clients, rings = 64, 8
	a := k.api(t)
	for i := range clients {
		a.create(t, 201, fmt.Sprint("r", i))
	}
	var running sync.WaitGroup
	codes := make([]int, clients)
	start := make(chan struct{})
	for i := range clients {
		running.Go(func() {
			<-start
			ring, size := i%rings, clients/rings
			next := ring + (i/rings+1)%size*rings
			got, err := a.do(t.Context(), http.MethodPatch, fmt.Sprint("r", i), mergeType, fmt.Sprintf(`{"spec":{"dependsOn":["r%d"]}}`, next))
			if err != nil {
				t.Error(err)
			}
			codes[i] = got.code
		})
	}
	close(start)
	running.Wait()
	count := map[int]int{}
	for _, code := range codes {
		count[code]++
	}
	if count[200] != clients-rings || count[422] != rings {
		t.Errorf("got %v, want %d times 200 and %d times 422", count, clients-rings, rings)
	}
	for i := range clients {
		if body := a.must(t, 200, http.MethodGet, fmt.Sprintf("r%d/graph", i), jsonType, ""); strings.Contains(body, "cyclic") {
			t.Errorf("there is a ring: %s", body)
		}
	}
	a.must(t, 200, http.MethodDelete, "", jsonType, "") // much faster than one by one
}

func storedRelations(t *testing.T, k storedKind) {
	a := k.api(t)
	a.create(t, 201, "top", "left", "right")
	a.create(t, 201, "left", "base")
	a.create(t, 201, "right", "base", "left")
	took := a.shows(t, "what does not exist blocks", "left", "base", 1, 2)
	a.create(t, 201, "base")
	took = max(took, a.shows(t, "the dependents are counted", "base", "", 0, 2))
	took = max(took, a.shows(t, "the tasks that are not finished block", "top", "left right", 2, 0))
	a.patch(t, 200, "left", `{"spec":{"taskState":"Finished"}}`)
	took = max(took, a.shows(t, "a finished task blocks nobody", "top", "right", 1, 0))
	took = max(took, a.shows(t, "a finished task blocks nobody", "right", "base", 1, 1))
	a.patch(t, 200, "top/status", `{"status":{"blockedByCount":77,"blockedBy":["nonsense"]}}`)
	took = max(took, a.shows(t, "what others write into the status is mended", "top", "right", 1, 0))
	a.must(t, 200, http.MethodDelete, "right", jsonType, "")
	took = max(took, a.shows(t, "a deleted task blocks, and depends on nothing", "top", "right", 1, 0))
	took = max(took, a.shows(t, "a deleted task depends on nothing", "base", "", 0, 1))
	// Milliseconds on an idle machine, and a second is what is promised; this is
	// a limit for one that is very busy.
	if took > 5*time.Second {
		t.Errorf("a status followed after %s", took)
	}
	t.Logf("the slowest status followed after %s", took)
	if generation := a.get(t, "top").Generation; generation != 1 {
		t.Errorf("the generation is %d", generation)
	}
	same(t, "by field", k.kubectl(t, "get", k.resource, "--field-selector", "status.blockedByCount=0", "-o", "jsonpath={.items[*].metadata.name}"), "base")

	var graph searchv1.TaskGraph
	must(t, json.Unmarshal([]byte(a.must(t, 200, http.MethodGet, "top/graph", jsonType, "")), &graph))
	drawn := graph.Kind + " " + draw(graph.Root)
	same(t, "the graph", drawn, "TaskGraph top[left=Finished[base] right?]")
	a.must(t, 404, http.MethodGet, "nobody/graph", jsonType, "")
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		a.must(t, 405, method, "top/graph", jsonType, "{}")
	}
}

// draw writes a graph as name[dependency dependency].
func draw(node searchv1.TaskGraphNode) string {
	text := node.Name
	if node.TaskState == "Finished" {
		text += "=Finished"
	}
	for mark, holds := range map[string]bool{"?": node.Missing, "^": node.Repeated, "@": node.Cyclic} {
		if holds {
			text += mark
		}
	}
	var below []string
	for _, dependency := range node.DependsOn {
		below = append(below, draw(dependency))
	}
	if len(below) > 0 {
		text += "[" + strings.Join(below, " ") + "]"
	}
	return text
}

// storedSlipped stores a cycle behind the server's back, as a restore does or
// another replica may.
func storedSlipped(t *testing.T, k storedKind) {
	a := k.api(t)
	a.create(t, 201, "a", "b")
	a.create(t, 201, "b")
	k.behind(t, "b", func(task *searchv1.ClusterTask) { task.Spec.DependsOn = []string{"a"} })
	cyclic := func(name string, want metav1.ConditionStatus) {
		t.Helper()
		eventually(t, "the condition of "+name, func() error {
			condition := meta.FindStatusCondition(a.get(t, name).Status.Conditions, searchv1.ConditionCyclic)
			if condition == nil || condition.Status != want {
				return fmt.Errorf("the condition is %+v, want %s", condition, want)
			}
			return nil
		})
	}
	cyclic("a", metav1.ConditionTrue)
	cyclic("b", metav1.ConditionTrue)
	var graph searchv1.TaskGraph
	must(t, json.Unmarshal([]byte(a.must(t, 200, http.MethodGet, "a/graph", jsonType, "")), &graph))
	same(t, "the graph", draw(graph.Root), "a[b[a@]]")
	a.patch(t, 200, "b", `{"spec":{"details":"can still be written"}}`)
	a.patch(t, 200, "b", `{"spec":{"dependsOn":null}}`)
	cyclic("a", metav1.ConditionFalse)
	cyclic("b", metav1.ConditionFalse)
}

// storedSizes: a body that is too large is refused, with and without a content
// type, and on the path of an object; one that is large is not.
func storedSizes(t *testing.T, k storedKind) {
	a := k.api(t)
	large := strings.Replace(k.object("large", nil), `"priority":1`, `"priority":1,"details":"`+strings.Repeat("x", 1_000_000)+`"`, 1)
	a.must(t, 201, http.MethodPost, "", jsonType, large)
	tooLarge := strings.Replace(large, "xxx", strings.Repeat("x", 3_000_000), 1)
	for _, name := range []string{"", "large"} {
		for _, contentType := range []string{jsonType, ""} {
			a.must(t, http.StatusRequestEntityTooLarge, http.MethodPost, name, contentType, tooLarge)
		}
	}
	a.must(t, http.StatusRequestEntityTooLarge, http.MethodPut, "large", jsonType, tooLarge)
	a.must(t, http.StatusRequestEntityTooLarge, http.MethodPatch, "large", mergeType, tooLarge)
}
