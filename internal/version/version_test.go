package version

import (
	"runtime/debug"
	"testing"
)

func TestVersionWithoutLinkerFlag(t *testing.T) {
	for name, test := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"go install of a release": {debug.BuildInfo{Main: debug.Module{Version: "v1.4.0"}}, "v1.4.0"},
		"go build in a clone": {debug.BuildInfo{
			Main:     debug.Module{Version: "(devel)"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123"}},
		}, "devel-0123456789ab"},
		"go build without version control": {debug.BuildInfo{}, "devel"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fromBuildInfo(&test.info); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestUnknownModule(t *testing.T) {
	if got := Module("example.com/nothing"); got != "unknown" {
		t.Errorf("%q", got)
	}
}
