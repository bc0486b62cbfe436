package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/taskctl-dev/taskctl/internal/version"
	"github.com/taskctl-dev/taskctl/storage/admin"
	"github.com/taskctl-dev/taskctl/storage/backup"
)

func (p *program) storageBackupCommand() *cli.Command {
	return &cli.Command{
		Name:      "backup",
		Usage:     "write everything that is stored, at one revision, into a file",
		ArgsUsage: "FILE",
		Description: "The appliance may run, and nothing of it stops. The file holds every object, Secrets too: only its owner\n" +
			"may read it. See docs/storage.md.",
		Flags:  append(storeFlags(), databaseFlags()...),
		Action: p.storageBackup,
	}
}

// backupResult is the JSON output of storage backup; docs/json.md has it.
type backupResult struct {
	File string `json:"file"`
	Size int64  `json:"size"`
	backup.Summary
}

func (p *program) storageBackup(c *cli.Context) error {
	if c.NArg() != 1 {
		return usageError("backup needs the name of one file, like: taskctl storage backup tasks.backup")
	}
	place, err := p.findStore(c)
	if err != nil {
		return err
	}
	out := p.printer(place.common)
	defer out.close()
	name := c.Args().First()
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("the file %s is there already: choose another name, or delete it first", name)
	}
	out.progress("writing %s", name)
	result := backupResult{File: name}
	result.Size, result.Summary, err = writeBackup(name, func(to io.Writer) error { return p.takeBackup(c, place, out, to) })
	if err != nil {
		return err
	}
	out.message("%s has %d keys and %d leases at revision %d", name, result.Rows, result.Leases, result.Revision)
	if place.json {
		return out.object(result)
	}
	return nil
}

// writeBackup lets take write a file, reads it again as a whole, and gives it
// its name only then.
func writeBackup(name string, take func(io.Writer) error) (size int64, summary backup.Summary, err error) {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*") // mode 0600
	if err != nil {
		return 0, summary, fmt.Errorf("writing the backup: %w", err)
	}
	defer func() {
		_ = file.Close()
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	if err := take(file); err != nil {
		return 0, summary, err
	}
	if err := file.Sync(); err != nil {
		return 0, summary, fmt.Errorf("writing the backup: %w", err)
	}
	if size, err = file.Seek(0, io.SeekCurrent); err != nil {
		return 0, summary, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return 0, summary, err
	}
	if summary, err = backup.Check(file); err != nil {
		return 0, summary, fmt.Errorf("reading the backup again: %w; see taskctl logs storage, and try again", err)
	}
	if err := os.Rename(file.Name(), name); err != nil {
		return 0, summary, fmt.Errorf("writing the backup: %w", err)
	}
	return size, summary, syncFolder(filepath.Dir(name))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// takeBackup writes a backup of the store, wherever it is.
func (p *program) takeBackup(c *cli.Context, place storePlace, out *printer, to io.Writer) error {
	ctx := c.Context
	if place.runs() {
		client, err := admin.NewClient(place.endpoint)
		if err != nil {
			return usageError("--endpoint: %w", err)
		}
		defer client.Close()
		if err := client.Backup(ctx, to); !errors.Is(err, admin.ErrNotServed) {
			return err
		}
		etcd, err := etcdClient(place.endpoint)
		if err != nil {
			return err
		}
		return errors.Join(backupOfEtcd(ctx, etcd, to), etcd.Close())
	}
	if err := place.mustExist(c); err != nil {
		return err
	}
	folder, chosen, err := place.own(c, out)
	if err != nil {
		return err
	}
	defer folder.Close()
	if isEtcdAlone(chosen) {
		return withStoppedEtcd(ctx, folder, func(ctx context.Context, client *clientv3.Client) error {
			return backupOfEtcd(ctx, client, to)
		})
	}
	store, err := openFrozen(ctx, folder, chosen)
	if err != nil {
		return err
	}
	_, err = admin.Backup(ctx, store, to, version.String())
	return errors.Join(err, store.Close())
}

// etcdTries is how often an etcd's backup is begun again when a compaction was
// faster.
const etcdTries = 3

// backupOfEtcd writes a backup of an etcd. What a try has written that failed
// is overwritten, which a file must allow.
func backupOfEtcd(ctx context.Context, client *clientv3.Client, to io.Writer) error {
	for try := 1; ; try++ {
		source, err := backup.OfEtcd(ctx, client)
		if err != nil {
			return err
		}
		_, err = backup.Write(ctx, to, source, version.String())
		if !errors.Is(err, rpctypes.ErrCompacted) || try == etcdTries {
			return err
		}
		file, ok := to.(interface {
			io.Seeker
			Truncate(size int64) error
		})
		if !ok {
			return err
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := file.Truncate(0); err != nil {
			return err
		}
	}
}
