package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// oldest is the oldest server version, as server_version_num counts.
const oldest = 130000

// checkServer refuses a server that is too old, that takes no writes or that
// is set to lose commits. It returns the level of synchronous_commit that the
// role has, which every transaction sets for itself, so that a later change of
// the default cannot weaken it.
func (d *Database) checkServer(ctx context.Context, c *conn) (synchronousCommit string, err error) {
	rows, err := c.text(ctx, `SELECT version(), current_setting('server_version_num'), pg_is_in_recovery(),
		current_setting('fsync'), current_setting('synchronous_commit'), current_setting('autovacuum')`)
	if err != nil {
		return "", explain(err)
	}
	version, number, recovery, fsync, commit, autovacuum := rows[0][0], rows[0][1], rows[0][2], rows[0][3], rows[0][4], rows[0][5]
	where := "PostgreSQL at " + address(d.config)
	switch n, err := strconv.Atoi(number); {
	case !strings.HasPrefix(version, "PostgreSQL"):
		return "", fmt.Errorf("the server at %s is not PostgreSQL but %q; use PostgreSQL 13 or newer", address(d.config), version)
	case err != nil || n < oldest:
		return "", fmt.Errorf("%s is too old (%s); use PostgreSQL 13 or newer", where, version)
	case recovery != "f":
		return "", fmt.Errorf("%s is a standby and takes no writes; give the primary's address", where)
	case fsync != "on":
		return "", fmt.Errorf("%s has fsync=%s and would lose acknowledged writes; set fsync = on in postgresql.conf and reload", where, fsync)
	case commit == "off":
		return "", fmt.Errorf("%s has synchronous_commit=off for role %q and would lose acknowledged writes; set it to on (postgresql.conf, ALTER DATABASE, ALTER ROLE or the address)", where, d.config.User)
	}
	if autovacuum != "on" {
		d.settings.Logger.Warn("autovacuum is off: the space of compacted revisions is used again only after a VACUUM by hand", "server", address(d.config))
	}
	return commit, nil
}
