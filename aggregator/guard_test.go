package aggregator

import (
	"errors"
	"strings"
	"testing"
)

func TestAPanicIsReturnedAsAnError(t *testing.T) {
	err := guard("the part", func() error { panic("broken") })()
	if err == nil || !strings.Contains(err.Error(), "the part panicked: broken") || !strings.Contains(err.Error(), "guard_test.go") {
		t.Errorf("got %v", err)
	}
	failure := errors.New("failed")
	if err := guard("the part", func() error { return failure })(); err != failure {
		t.Errorf("got %v", err)
	}
}
