// Package version says which build this is. It is used by the command line and
// by state.json; it decides nothing.
package version

import "runtime/debug"

// version is set by the linker:
// -X github.com/taskctl-dev/taskctl/internal/version.version=v1.2.3
var version string

// String is the version of this build: what the linker set, else the module
// version that `go install` recorded, else the revision of the source.
func String() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return fromBuildInfo(info)
}

func fromBuildInfo(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
			return "devel-" + setting.Value[:12]
		}
	}
	return "devel"
}

// Module is the version of a module that this program was built with, or
// "unknown".
func Module(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dependency := range info.Deps {
		if dependency.Path == path {
			return dependency.Version
		}
	}
	return "unknown"
}
