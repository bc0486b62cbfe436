package cluster_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"github.com/taskctl-dev/taskctl/cluster/embedded"
)

func TestAFatalErrorOfKubernetesBecomesAnErrorWithItsReason(t *testing.T) {
	var log bytes.Buffer
	exits := make(chan error, 1)
	restore := embedded.CaptureProcess(&log, func(err error) { exits <- err })
	defer restore()

	after := make(chan bool, 1)
	go func() {
		returned := false
		defer func() { after <- returned }()
		klog.Fatalf("PostStartHook %q failed", "rbac/bootstrap-roles")
		returned = true
	}()
	err := <-exits
	var exit *embedded.ExitError
	if !errors.As(err, &exit) || exit.Code == 0 {
		t.Errorf("the error is %v, and has no exit code", err)
	}
	if want := `PostStartHook "rbac/bootstrap-roles" failed`; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("the error is %q, and does not end with %q", err, want)
	}
	if <-after {
		t.Error("the code after the fatal error was run")
	}
	if !strings.Contains(log.String(), "rbac/bootstrap-roles") {
		t.Errorf("the log does not have the reason: %q", log.String())
	}
}
