package aggregator_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/taskctl-dev/taskctl/aggregator"
)

// testOwnKinds serves the two kinds of the guide beside the others.
func testOwnKinds(t *testing.T, c control) {
	options := c.storing(t)
	options.Config = c.REST() // who may list namespaces; a role would say so
	must(t, rest.LoadTLSFiles(options.Config))
	options.Config.CertFile, options.Config.KeyFile, options.Config.CAFile = "", "", ""
	options.Kinds = []aggregator.Kind{notes(), backlogKind()}
	s := c.run(t, options)
	s.register(t)
	namespace := c.namespace(t)

	k := storedKind{c, "Note", "notes", namespace}
	manifest := func(text string) string {
		return k.file(t, "apiVersion: search.task.example.example.com/v1\nkind: Note\nmetadata: {name: reminder}\ntext: "+text+"\n")
	}
	eventually(t, "the kind is discovered", func() error {
		if r := k.try(t, "apply", "-f", manifest("one")); r.Code != 0 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	k.kubectl(t, "apply", "--server-side", "--force-conflicts", "-f", manifest("two"))
	same(t, "text", k.field(t, "reminder", ".text"), "two")
	k.refused(t, []string{"text: Required value"}, "apply", "-f", manifest(`""`))
	if out := k.kubectl(t, "explain", "notes.text"); !strings.Contains(out, "to be kept in mind") {
		t.Errorf("explain: %s", out)
	}
	k.kubectl(t, "delete", "notes", "reminder")

	has := func(pending int, limit string) {
		t.Helper()
		eventually(t, "the backlog follows", func() error {
			got := s.get(t, c.asAdmin(t), "/apis/search.task.example.example.com/v1/backlogs/"+namespace)
			if want := fmt.Sprintf(`"pending":%d`, pending); got.code != 200 || !strings.Contains(got.body, want) || !strings.Contains(got.body, limit) {
				return fmt.Errorf("%d %s", got.code, got.body)
			}
			return nil
		})
	}
	has(0, "")
	c.createTask(t, namespace, "x", 1)
	c.createTask(t, namespace, "y", 1)
	has(2, "")
	c.deleteTask(t, namespace, "y")
	_, err := c.admin.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/limit":"7"}}}`), metav1.PatchOptions{})
	must(t, err)
	has(1, `"limit":"7"`)
	list := s.get(t, c.asAdmin(t), "/apis/search.task.example.example.com/v1/backlogs?limit=1")
	if list.code != http.StatusOK || !strings.Contains(list.body, `"kind":"BacklogList"`) || !strings.Contains(list.body, `"continue":"`) {
		t.Errorf("a list: %d %s", list.code, list.body)
	}
	if err := expectCode("a user without rights", s.get(t, c.proxied(t, "nobody"), "/apis/search.task.example.example.com/v1/backlogs"), 403); err != nil {
		t.Error(err)
	}
}

// TestTheGuideShowsTheCodeThatIsTested compares docs/aggregator.md with the
// files that testOwnKinds uses.
func TestTheGuideShowsTheCodeThatIsTested(t *testing.T) {
	guide, err := os.ReadFile("../docs/aggregator.md")
	must(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
	for i, file := range []string{"note_test.go", "backlog_test.go"} {
		content, err := os.ReadFile(file)
		must(t, err)
		_, code, _ := strings.Cut(string(content), "\n)\n\n")
		if len(blocks) != 2 || blocks[i][1] != code {
			t.Errorf("the guide's block of Go code %d of %d is not what %s has", i+1, len(blocks), file)
		}
		if lines := strings.Count(code, "\n"); lines > 100 {
			t.Errorf("%s has %d lines", file, lines)
		}
	}
}
