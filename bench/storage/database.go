package main

import (
	"context"
	"net/url"

	"github.com/jackc/pgx/v5"
)

const databaseName = "taskctl_bench"

// database is one on a PostgreSQL server that is made anew for each contender.
type database struct{ server string }

func newDatabase(server string) database { return database{server} }

// dsn is that of the database itself.
func (d database) dsn() string {
	u, err := url.Parse(d.server)
	if err != nil {
		return d.server // create reports it
	}
	u.Path = "/" + databaseName
	return u.String()
}

func (d database) create(ctx context.Context, _ string) (cleanup func() error, err error) {
	if err := d.run(ctx, "DROP DATABASE IF EXISTS "+databaseName+" WITH (FORCE)"); err != nil {
		return nil, err
	}
	if err := d.run(ctx, "CREATE DATABASE "+databaseName); err != nil {
		return nil, err
	}
	return func() error {
		return d.run(context.Background(), "DROP DATABASE IF EXISTS "+databaseName+" WITH (FORCE)")
	}, nil
}

func (d database) run(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, d.server)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}
