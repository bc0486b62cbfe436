package operator

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestOptionsHaveDefaults(t *testing.T) {
	given := &rest.Config{Host: "https://127.0.0.1:1"}
	options, err := Options{Config: given, Instance: strings.Repeat("x", 300)}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if given.QPS != 0 || given.UserAgent != "" {
		t.Errorf("the caller's config was changed to %+v", given)
	}
	if options.Config.QPS != -1 || options.Config.UserAgent != component {
		t.Errorf("QPS %v, user agent %q", options.Config.QPS, options.Config.UserAgent)
	}
	if options.Clock == nil || options.Log.GetSink() != nil && options.Log.Enabled() || options.MaxConcurrentReconciles < 2 {
		t.Errorf("options are %+v", options)
	}
	if len(options.Instance) != instanceLimit {
		t.Errorf("the instance's name has %d bytes", len(options.Instance))
	}

	limited, err := Options{Config: &rest.Config{QPS: 5, UserAgent: "mine"}}.withDefaults()
	if err != nil || limited.Config.QPS != 5 || limited.Config.UserAgent != "mine" || limited.Instance == "" {
		t.Errorf("options are %+v, %v", limited, err)
	}
	if _, err := (Options{}).withDefaults(); err == nil {
		t.Error("a missing Config is no error")
	}
}
