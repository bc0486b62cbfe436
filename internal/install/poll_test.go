package install

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPollSaysWhatItWaitedForAndWhyItFailed(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	attempts := 0
	err := poll(ctx, "the moon to rise", func(ctx context.Context) error {
		attempts++
		if attempts == 2 {
			cancel(errors.New("it took too long"))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.New("it is cloudy")
	})
	if err == nil {
		t.Fatal("there was no error")
	}
	for _, part := range []string{"the moon to rise", "it took too long", "it is cloudy"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
}

func TestPollTriesUntilItSucceeds(t *testing.T) {
	attempts := 0
	err := poll(t.Context(), "the third attempt", func(context.Context) error {
		if attempts++; attempts < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || attempts != 3 {
		t.Errorf("%d attempts, %v", attempts, err)
	}
}

func TestConditionTrue(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Established", "status": "True"},
		map[string]any{"type": "Available", "status": "False", "reason": "ServiceNotFound", "message": "there is no such service"},
	}}}}
	if err := conditionTrue(object, "Established"); err != nil {
		t.Error(err)
	}
	if err := conditionTrue(object, "Available"); err == nil || !strings.Contains(err.Error(), "there is no such service") {
		t.Errorf("error is %v", err)
	}
	if err := conditionTrue(object, "Ready"); err == nil {
		t.Error("a missing condition is true")
	}
}
