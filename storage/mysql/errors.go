package mysql

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// Error numbers that a decision depends on; MySQL and MariaDB share them
// unless said otherwise.
const (
	errDuplicate       = 1062
	errLockTimeout     = 1205
	errDeadlock        = 1213
	errRecordChanged   = 1020 // MariaDB, innodb_snapshot_isolation
	errNoWait          = 3572 // MySQL; MariaDB answers NOWAIT with 1205
	errTooLong         = 1406
	errOutOfRange      = 1264
	errTableFull       = 1114
	errRowTooLarge     = 1118
	errNoPrivilege     = 1142
	errNoDatabaseGrant = 1044
	errAccessDenied    = 1045
	errNoDatabase      = 1049
	errNoTable         = 1146
	errTooMany         = 1040
	errNeedsPrivilege  = 1227
	errOptionPrevents  = 1290 // read_only
	errReadOnly        = 1836
)

func number(err error) uint16 {
	var failed *mysql.MySQLError
	if errors.As(err, &failed) {
		return failed.Number
	}
	return 0
}

// rejection tells what a server's error means for a batch that was rolled
// back. Only numbers are listed that no COMMIT fails with, except a deadlock,
// which is how a Galera cluster refuses a transaction. Any other error leaves
// the outcome unknown.
func rejection(err error) error {
	switch number(err) {
	case errDuplicate:
		// The fence in meta, or an ID that is already there: the database is
		// not what the session last stored.
		return backend.ErrFenced
	case errLockTimeout, errDeadlock, errRecordChanged:
		return &backend.Rejected{Err: explain(err), Retry: true}
	case errTooLong, errOutOfRange, errTableFull, errRowTooLarge, errNoPrivilege, errNoTable:
		return &backend.Rejected{Err: explain(err)}
	}
	return nil
}

// explain makes one line of a server's error.
func explain(err error) error {
	var failed *mysql.MySQLError
	if !errors.As(err, &failed) {
		return err
	}
	text := fmt.Sprintf("MySQL error %d: %s", failed.Number, failed.Message)
	switch failed.Number {
	case errNoPrivilege, errNoDatabaseGrant, errNeedsPrivilege:
		text += "; GRANT the user what it lacks, or use another user"
	case errOptionPrevents, errReadOnly:
		text += "; give the primary's address"
	}
	return &serverError{text: oneLine(text), err: err}
}

// serverError is a server's error in our words.
type serverError struct {
	text string
	err  error
}

func (e *serverError) Error() string { return e.text }
func (e *serverError) Unwrap() error { return e.err }

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// explainConnect says in one line why there is no connection, and what to do.
// The password is in none of the texts that it is made of.
func explainConnect(config *mysql.Config, err error) error {
	var failed *mysql.MySQLError
	if errors.As(err, &failed) {
		advice := "see the server's log"
		switch failed.Number {
		case errAccessDenied:
			advice = "check user and password in the address"
		case errNoDatabase:
			advice = fmt.Sprintf("create it with CREATE DATABASE %s", quoteIdentifier(config.DBName))
		case errNoDatabaseGrant:
			advice = fmt.Sprintf("GRANT ALL ON %s.* TO the user", quoteIdentifier(config.DBName))
		case errTooMany:
			advice = "raise max_connections on the server, or stop other clients"
			err = errors.Join(backend.ErrUnreachable, err)
		}
		return &serverError{text: oneLine(fmt.Sprintf("MySQL at %s refused the connection: %s; %s", config.Addr, failed.Message, advice)), err: err}
	}
	advice, failure := "start the server, or correct the address", err
	var unknown x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, mysql.ErrNoTLS):
		advice = "turn on TLS in the server, or take tls= out of the address"
	case errors.As(err, &unknown), errors.As(err, &certificate):
	default:
		failure = errors.Join(backend.ErrUnreachable, err)
	}
	return &serverError{text: oneLine(fmt.Sprintf("MySQL at %s cannot be reached: %s; %s", config.Addr, cause(err), advice)), err: failure}
}

// cause is the innermost readable reason of a connection error.
func cause(err error) string {
	var network *net.OpError
	var lookup *net.DNSError
	switch {
	case errors.As(err, &lookup):
		return lookup.Error()
	case errors.As(err, &network):
		return network.Err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	}
	return err.Error()
}
