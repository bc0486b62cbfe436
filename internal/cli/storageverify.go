package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/admin"
	"github.com/taskctl-dev/taskctl/storage/verify"
)

func (p *program) storageVerifyCommand() *cli.Command {
	return &cli.Command{
		Name:  "verify",
		Usage: "check the store's rules over all databases, and report every breach",
		Description: "The appliance may run. Everything is read and nothing is changed. The exit code is 1 if a rule is violated.\n" +
			"The rules are in docs/storage.md.",
		Flags:  append(storeFlags(), databaseFlags()...),
		Action: noArguments(p.storageVerify),
	}
}

func (p *program) storageVerify(c *cli.Context) error {
	place, err := p.findStore(c)
	if err != nil {
		return err
	}
	out := p.printer(place.common)
	defer out.close()
	out.progress("reading every database")
	report, err := p.verified(c, place, out)
	if err != nil {
		return err
	}
	if place.json {
		err = out.object(report)
	} else {
		printReport(out, report)
	}
	if err == nil && !report.Clean() {
		return &exitError{code: codeFailure}
	}
	return err
}

func printReport(out *printer, report verify.Report) {
	for _, breach := range report.Breaches {
		key := ""
		if breach.Key != "" {
			key = fmt.Sprintf(" %q:", breach.Key)
		}
		out.data("%s: %s:%s %s\n", breach.Backend, breach.Rule, key, breach.Message)
	}
	if report.More > 0 {
		out.data("and %d more\n", report.More)
	}
	for _, b := range report.Backends {
		out.message("%s: %d keys, %d versions and %d leases up to revision %d", b.Name, b.Keys, b.Versions, b.Leases, b.Revision)
	}
	switch count := len(report.Breaches) + report.More; count {
	case 0:
		out.message("no rule is violated")
	case 1:
		out.message("1 breach")
	default:
		out.message("%d breaches", count)
	}
}

// verified checks the store, wherever it is.
func (p *program) verified(c *cli.Context, place storePlace, out *printer) (verify.Report, error) {
	nothing := func() (verify.Report, error) {
		out.message("the store is etcd itself, which keeps its own rules: nothing was checked")
		return verify.Report{Backends: []verify.BackendReport{}, Breaches: []verify.Breach{}}, nil
	}
	if place.runs() {
		client, err := admin.NewClient(place.endpoint)
		if err != nil {
			return verify.Report{}, usageError("--endpoint: %w", err)
		}
		defer client.Close()
		report, err := client.Verify(c.Context)
		if errors.Is(err, admin.ErrNotServed) {
			return nothing()
		}
		return report, err
	}
	if err := place.mustExist(c); err != nil {
		return verify.Report{}, err
	}
	folder, chosen, err := place.own(c, out)
	if err != nil {
		return verify.Report{}, err
	}
	defer folder.Close()
	if isEtcdAlone(chosen) {
		return nothing()
	}
	settings, err := storeConfig(folder, chosen)
	if err != nil {
		return verify.Report{}, err
	}
	return verifyDatabases(c.Context, settings)
}

func verifyDatabases(ctx context.Context, settings storage.Config) (report verify.Report, err error) {
	databases, err := storage.OpenDatabases(ctx, settings)
	if err != nil {
		return report, err
	}
	report, err = admin.VerifyDatabases(ctx, databases)
	return report, errors.Join(err, databases.Close())
}
