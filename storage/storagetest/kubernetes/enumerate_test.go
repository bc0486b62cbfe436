package kubernetes

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// suiteFunctions lists the suite's exported functions from its source, so that
// one that a new version adds fails until it is in the table.
func suiteFunctions(t *testing.T) []string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	suite, err := build.Import("k8s.io/apiserver/pkg/storage/testing", here, build.FindOnly)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(suite.Dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Recv != nil {
				continue
			}
			name := function.Name.Name
			if strings.HasPrefix(name, "Run") && !strings.HasPrefix(name, "RunBenchmark") {
				names = append(names, name)
			}
		}
	}
	if len(names) < 50 {
		t.Fatalf("only %d functions found in %s", len(names), suite.Dir)
	}
	slices.Sort(names)
	return names
}

// TestTheTableNamesNoFunctionInVain fails for entries that the suite
// does not have (any more).
func TestTheTableNamesNoFunctionInVain(t *testing.T) {
	functions := suiteFunctions(t)
	for name := range suiteTests() {
		if !slices.Contains(functions, name) {
			t.Errorf("the suite has no function %s", name)
		}
	}
}
