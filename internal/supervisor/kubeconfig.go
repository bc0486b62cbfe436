package supervisor

import (
	"context"
	"fmt"

	"github.com/taskctl-dev/taskctl/internal/control"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	"github.com/taskctl-dev/taskctl/internal/kubeconfig"
	"github.com/taskctl-dev/taskctl/internal/pki"
)

func (a *Appliance) entry() (kubeconfig.Entry, error) {
	certificate, key, err := a.pki.ClientPEM(pki.Admin)
	if err != nil {
		return kubeconfig.Entry{}, fmt.Errorf("reading the administrator's certificate: %w", err)
	}
	return kubeconfig.Entry{
		Name:        kubeconfig.ContextName(a.options.Name),
		Server:      a.server,
		CA:          a.pki.CABundle(),
		Certificate: certificate,
		Key:         key,
		Owner:       a.folder.Path,
	}, nil
}

// writeKubeconfig writes the data folder's own kubeconfig.
func (a *Appliance) writeKubeconfig() error {
	entry, err := a.entry()
	if err != nil {
		return err
	}
	content, err := kubeconfig.Standalone(entry)
	if err != nil {
		return err
	}
	if err := datadir.WriteFile(a.folder.Kubeconfig(), content, 0o600); err != nil {
		return fmt.Errorf("writing the data folder's kubeconfig: %w", err)
	}
	return nil
}

// mergeKubeconfig puts the context into the user's kubeconfig and records what
// it did, so that a later down can undo it even after a crash.
func (a *Appliance) mergeKubeconfig(ctx context.Context) error {
	file := a.options.Kubeconfig
	before := a.folder.State().Kubeconfig
	if before != nil && before.File != file {
		// A run that was killed had merged into another file.
		if err := a.unmergeKubeconfig(ctx); err != nil {
			a.notice(err.Error())
		}
		before = nil
	}
	if file == "" {
		return nil
	}
	entry, err := a.entry()
	if err != nil {
		return err
	}
	former, created, err := kubeconfig.Merge(ctx, file, entry, a.options.SwitchContext)
	if err != nil {
		return err
	}
	merged := &datadir.Merged{File: file, Context: entry.Name, FormerContext: former, Created: created}
	if before != nil {
		merged.Created = before.Created || created
		if former == "" {
			merged.FormerContext = before.FormerContext
		}
	}
	return a.folder.Update(func(s *datadir.State) { s.Kubeconfig = merged })
}

func (a *Appliance) unmergeKubeconfig(ctx context.Context) error {
	merged := a.folder.State().Kubeconfig
	if merged == nil {
		return nil
	}
	if err := Unmerge(ctx, a.folder.Path, merged); err != nil {
		return err
	}
	a.mu.Lock()
	lost := a.lost
	a.mu.Unlock()
	if lost {
		return nil
	}
	return a.folder.Update(func(s *datadir.State) { s.Kubeconfig = nil })
}

// Unmerge takes out of a user's kubeconfig what an appliance had merged.
func Unmerge(ctx context.Context, dataDir string, merged *datadir.Merged) error {
	return kubeconfig.Remove(ctx, merged.File, merged.Context, dataDir, merged.FormerContext, merged.Created)
}

// renewed is called when a certificate was renewed: kubeconfigs hold a copy.
func (a *Appliance) renewed(name string) {
	a.log.Info("a certificate was renewed", "name", name)
	if err := a.writeKubeconfig(); err != nil {
		a.notice(err.Error())
	}
	if state := a.State(); state != control.Ready && state != control.Degraded {
		return
	}
	if err := a.mergeKubeconfig(context.Background()); err != nil {
		a.notice(err.Error())
	}
}
