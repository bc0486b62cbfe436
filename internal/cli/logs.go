package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/logging"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

func (p *program) logsCommand() *cli.Command {
	return &cli.Command{
		Name:      "logs",
		Usage:     "print the log of one component, or of all in the order of time",
		ArgsUsage: "[COMPONENT]",
		Description: "The log supervisor tells what happened to the components. When the appliance does not run,\n" +
			"the last run's logs are printed, and the exit code is 3.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with new lines until ^C"},
			&cli.DurationFlag{Name: "since", Usage: "only lines of the last `DURATION`, like 10m"},
			&cli.StringFlag{Name: "export", Usage: "copy the log files to the folder `DIR` instead"},
		},
		Action: p.logs,
	}
}

// exportResult is the JSON output of logs --export; docs/json.md has it.
type exportResult struct {
	Directory string   `json:"directory"`
	Files     []string `json:"files"`
}

func (p *program) logs(c *cli.Context) error {
	values, err := p.common(c)
	if err != nil {
		return err
	}
	if c.NArg() > 1 {
		return usageError("logs takes one component, it got %d; see: taskctl logs --help", c.NArg())
	}
	if c.Duration("since") < 0 {
		return usageError("--since must not be negative, like --since 10m")
	}
	options := logging.ReadOptions{Components: c.Args().Slice(), Follow: c.Bool("follow")}
	if since := c.Duration("since"); since > 0 {
		options.Since = time.Now().Add(-since)
	}
	info, err := datadir.Inspect(values.dataDir)
	if err != nil {
		return err
	}
	if directory := c.String("export"); directory != "" {
		return p.exportLogs(c.Context, values, info, directory)
	}
	if !info.Held {
		return p.oldLogs(c.Context, values, info, options)
	}
	client, err := client(values)
	if err != nil {
		return err
	}
	defer client.Close()
	err = client.Logs(c.Context, options, p.env.Stdout)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		// It has just begun, or a cleaner of /tmp took its socket.
		err = logging.Read(c.Context, datadir.Logs(values.dataDir), options, p.env.Stdout)
	}
	if err != nil {
		return err
	}
	return c.Context.Err() // ^C has an exit code of its own
}

// oldLogs prints what the last run left, and fails nevertheless: whoever waits
// for new lines must know that there won't be any.
func (p *program) oldLogs(ctx context.Context, values common, info datadir.Info, options logging.ReadOptions) error {
	if !info.Exists {
		return notRunning(values)
	}
	options.Follow = false
	if err := logging.Read(ctx, datadir.Logs(values.dataDir), options, p.env.Stdout); err != nil {
		return err
	}
	return notRunning(values)
}

func (p *program) exportLogs(ctx context.Context, values common, info datadir.Info, directory string) error {
	if !info.Exists {
		return notRunning(values)
	}
	files, err := copyLogs(values.dataDir, directory)
	if err != nil {
		return err
	}
	node, err := supervisor.NodeOf(ctx, info.State)
	if err != nil {
		return err
	}
	if node != nil {
		if err := node.ExportLogs(ctx, filepath.Join(directory, "kind")); err != nil {
			return err
		}
		if exported, err := filesBelow(directory, "kind"); err == nil {
			files = append(files, exported...)
		}
	}
	out := p.printer(values)
	if values.json {
		return out.object(exportResult{Directory: directory, Files: files})
	}
	out.message("copied %d log files to %s", len(files), directory)
	return nil
}

// copyLogs copies the log files to a folder, which is made if need be.
func copyLogs(dataDir, directory string) ([]string, error) {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder for the logs: %w", err)
	}
	entries, err := os.ReadDir(datadir.Logs(dataDir))
	if err != nil {
		return nil, fmt.Errorf("reading the folder of logs: %w", err)
	}
	var copied []string
	for _, entry := range entries {
		if err := copyFile(filepath.Join(datadir.Logs(dataDir), entry.Name()), filepath.Join(directory, entry.Name())); err != nil {
			return nil, fmt.Errorf("copying logs: %w", err)
		}
		copied = append(copied, entry.Name())
	}
	return copied, nil
}

// filesBelow are the files in a folder of directory, relative to directory.
func filesBelow(directory, folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(filepath.Join(directory, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(directory, path)
		files = append(files, relative)
		return err
	})
	return files, err
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		target.Close()
		return err
	}
	return target.Close()
}
