// Command taskctl gives a developer a Kubernetes control plane, the store under
// it, a Task operator and an aggregated API in one process.
package main

import (
	"os"

	"github.com/taskctl-dev/taskctl/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args, cli.OS())) }
