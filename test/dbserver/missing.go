package dbserver

import (
	"os"
	"testing"
)

// missing ends a test that needs a server which is not there.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing, and CI=true", what)
	}
	t.Skipf("%s is missing", what)
}
