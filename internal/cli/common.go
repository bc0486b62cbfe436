package cli

import (
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/datadir"
)

// commonFlags are the flags of every command.
func commonFlags() []cli.Flag {
	count := 0
	return []cli.Flag{
		&cli.StringFlag{Name: "name", EnvVars: []string{"TASKCTL_NAME"}, Value: defaultName, Usage: "`NAME` of the appliance: 1 to 40 of a-z, 0-9 and -"},
		&cli.StringFlag{Name: "data-dir", EnvVars: []string{"TASKCTL_DATA_DIR"}, Usage: "data folder `DIR`", DefaultText: "$XDG_STATE_HOME/taskctl/NAME"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text", Usage: "`FORMAT` of the output: text or json"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no messages but errors"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Count: &count, Usage: "more detail, in the log files; twice for still more", DisableDefaultText: true},
	}
}

const defaultName = "taskctl"

// common are the values of the common flags.
type common struct {
	name      string
	dataDir   string
	json      bool
	quiet     bool
	verbosity int

	dataDirGiven bool // by the flag: the environment holds for the next command too
}

func (p *program) common(c *cli.Context) (common, error) {
	values := common{
		name:      c.String("name"),
		dataDir:   c.String("data-dir"),
		quiet:     c.Bool("quiet"),
		verbosity: c.Count("verbose"),
	}
	switch format := c.String("output"); format {
	case "text":
	case "json":
		values.json = true
	default:
		return common{}, usageError("the output format %q is not known: use -o text or -o json", format)
	}
	if err := datadir.CheckName(values.name); err != nil {
		return common{}, usageError("%w; choose it with --name or TASKCTL_NAME", err)
	}
	if values.dataDir != "" {
		values.dataDirGiven = values.dataDir != p.env.Getenv("TASKCTL_DATA_DIR")
		path, err := filepath.Abs(values.dataDir)
		values.dataDir = path
		return values, err
	}
	root, err := datadir.Root(p.env.Getenv)
	if err != nil {
		return common{}, err
	}
	values.dataDir = filepath.Join(root, values.name)
	return values, nil
}
