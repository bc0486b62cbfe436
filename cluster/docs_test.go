package cluster_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTheGuideShowsTheCodeThatIsTested compares the guide with this package's
// files, which the compiler and the other tests have checked.
func TestTheGuideShowsTheCodeThatIsTested(t *testing.T) {
	guide, err := os.ReadFile("../docs/testing-your-operator.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	for _, name := range []string{"painter_test.go", "painting_test.go", "ourstore_test.go"} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(content)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
	if len(blocks) != 3 {
		t.Errorf("the guide has %d blocks of Go code, want 3", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(sources.String(), block[1]) {
			t.Errorf("this code of the guide is in none of the test files:\n%s", block[1])
		}
	}
}
