package embedded

import (
	"strings"

	"k8s.io/apimachinery/pkg/version"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/compatibility"
)

// Version is the version of Kubernetes that runs here.
const Version = "v1.37.2"

// reportVersion makes /version say [Version] also in programs that were built
// without the linker flags that set Kubernetes' version, as tests and
// `go install` are: they would say v0.0.0, and clients would think that the
// server is too old.
func reportVersion(config *genericapiserver.Config) {
	config.EffectiveVersion = reportedVersion{config.EffectiveVersion}
}

type reportedVersion struct {
	compatibility.EffectiveVersion
}

// Info implements [compatibility.EffectiveVersion].
func (v reportedVersion) Info() *version.Info {
	info := v.EffectiveVersion.Info()
	if info == nil || !strings.HasPrefix(info.GitVersion, "v0.0.0") {
		return info
	}
	reported := *info
	reported.GitVersion = Version
	reported.GitCommit, reported.GitTreeState, reported.BuildDate = "", "", ""
	return &reported
}
