package cli

import (
	"os/exec"
	"strings"

	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/kubeconfig"
)

// nameFlag is what a suggested command needs to mean the same appliance.
func (c common) nameFlag() string {
	flags := ""
	if c.name != defaultName {
		flags += " --name " + c.name
	}
	if c.dataDirGiven {
		flags += " --data-dir " + quoted(c.dataDir)
	}
	return flags
}

// kubectlHint is how the user's kubectl is told to mean the appliance: the
// embedded one where there is no other, and with the file where its context
// was merged into another file than kubectl reads.
func (p *program) kubectlHint(values common, context string) string {
	info, err := datadir.Inspect(values.dataDir)
	if _, missing := exec.LookPath("kubectl"); missing != nil || err != nil || info.State.Kubeconfig == nil {
		return "taskctl kubectl" + values.nameFlag()
	}
	hint := "kubectl --context " + context
	file := info.State.Kubeconfig.File
	if read, err := kubeconfig.DefaultFile(p.env.Getenv); err != nil || read != file {
		hint = "kubectl --kubeconfig " + quoted(file) + " --context " + context
	}
	return hint
}

// quoted is a path as a shell reads it.
func quoted(path string) string {
	if !strings.ContainsAny(path, " \t\n\"'$\\`*?[]{}()<>|&;!#~") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
