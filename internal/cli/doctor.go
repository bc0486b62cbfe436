package cli

import (
	"context"

	"github.com/urfave/cli/v2"
)

func (p *program) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "check whether this machine and this user's files are fit for an appliance",
		Description: "Exit code 1 if a check failed. With --fix, what killed appliances left behind is removed:\n" +
			"ephemeral data folders, and contexts in the kubeconfig whose data folder is gone.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "fix", Usage: "mend what can be mended"}},
		Action: noArguments(p.doctor),
	}
}

// checkResult is one check of doctor; docs/json.md has it.
type checkResult struct {
	Check string `json:"check"`
	// State is ok, failed or fixed.
	State   string `json:"state"`
	Message string `json:"message"`
}

type doctorResult struct {
	Checks []checkResult `json:"checks"`
}

// check is one thing that doctor looks at. run returns what it found; an error
// is a failed check, and says what to do. fix may be nil.
type check struct {
	name string
	run  func(ctx context.Context) (string, error)
	fix  func(ctx context.Context) (string, error)
}

func (p *program) doctor(c *cli.Context) error {
	values, err := p.common(c)
	if err != nil {
		return err
	}
	result := doctorResult{}
	failed := false
	for _, check := range p.checks(values) {
		found := checkResult{Check: check.name, State: "ok"}
		found.Message, err = check.run(c.Context)
		if err != nil && check.fix != nil && c.Bool("fix") {
			found.State = "fixed"
			found.Message, err = check.fix(c.Context)
		}
		if err != nil {
			found.State, found.Message, failed = "failed", oneLine(err), true
		}
		result.Checks = append(result.Checks, found)
	}
	out := p.printer(values)
	if values.json {
		if err := out.object(result); err != nil {
			return err
		}
	} else {
		for _, found := range result.Checks {
			out.data("%-6s  %s: %s\n", found.State, found.Check, found.Message)
		}
	}
	if failed {
		return &exitError{code: codeFailure}
	}
	return nil
}
