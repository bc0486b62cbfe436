package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// SQLSTATEs that a decision depends on, see PostgreSQL's appendix A.
const (
	codeCheckViolation       = "23514"
	codeUniqueViolation      = "23505"
	codeLockNotAvailable     = "55P03"
	codeSerializationFailure = "40001"
	codeDeadlock             = "40P01"
	codePermission           = "42501"
	codeReadOnly             = "25006"
)

// rejection tells what an error of a statement before COMMIT means for its
// batch. Nothing of the batch is stored in any case: the server skips the rest
// of the pipeline. A code that is not listed (an administrator's shutdown, a
// proxy's own error) ends the session all the same.
func rejection(failed *pgconn.PgError) error {
	switch failed.Code {
	case codeCheckViolation, codeUniqueViolation:
		// The CHECK on meta, or an ID that is already there: the database is
		// not what the session last stored.
		return backend.ErrFenced
	case codeSerializationFailure, codeDeadlock, codeLockNotAvailable:
		return &backend.Rejected{Err: explain(failed), Retry: true}
	case codeReadOnly:
		return nil
	}
	switch failed.Code[:2] {
	case "22", // data
		"23", // constraints
		"42", // permissions, missing tables
		"53", // disk full, out of memory
		"54": // too large for an index or a row
		return &backend.Rejected{Err: explain(failed)}
	}
	return nil
}

// explain makes one line of a server's error.
func explain(err error) error {
	var failed *pgconn.PgError
	if !errors.As(err, &failed) {
		return err
	}
	text := failed.Message
	if failed.Detail != "" {
		text += " (" + failed.Detail + ")"
	}
	if failed.Code == codePermission {
		text += "; GRANT the role of the address what it lacks, or use another role"
	}
	return &serverError{text: oneLine("PostgreSQL: " + text), err: err}
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
func explainConnect(config *pgconn.Config, err error) error {
	where := address(config)
	var failed *pgconn.PgError
	if errors.As(err, &failed) {
		var advice string
		switch failed.Code {
		case "28P01", "28000":
			advice = "check user and password in the address, and pg_hba.conf on the server"
		case "3D000":
			advice = fmt.Sprintf("create it with CREATE DATABASE %s", quoteIdentifier(config.Database))
		case "53300":
			advice = "raise max_connections on the server, or stop other clients"
			err = errors.Join(backend.ErrUnreachable, err)
		case "57P03":
			advice = "wait until the server has started"
			err = errors.Join(backend.ErrUnreachable, err)
		default:
			advice = "see the server's log"
		}
		return &serverError{text: oneLine(fmt.Sprintf("PostgreSQL at %s refused the connection: %s; %s", where, failed.Message, advice)), err: err}
	}
	advice, failure := "start the server, or correct the address", err
	var unknown x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	switch {
	case strings.Contains(err.Error(), "server refused TLS"):
		advice = "turn on ssl in the server, or add sslmode=disable to the address"
	case errors.As(err, &unknown), errors.As(err, &certificate):
		advice = "add sslrootcert=FILE to the address"
	default:
		failure = errors.Join(backend.ErrUnreachable, err)
	}
	return &serverError{text: oneLine(fmt.Sprintf("PostgreSQL at %s cannot be reached: %s; %s", where, cause(err), advice)), err: failure}
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

func address(config *pgconn.Config) string {
	if strings.HasPrefix(config.Host, "/") {
		return config.Host
	}
	return net.JoinHostPort(config.Host, fmt.Sprint(config.Port))
}

// isConnectionError reports whether the connection, not the statement, failed.
func isConnectionError(err error) bool {
	var failed *pgconn.PgError
	if !errors.As(err, &failed) {
		return true
	}
	return failed.Severity == "FATAL" || failed.Severity == "PANIC" || strings.HasPrefix(failed.Code, "08") || strings.HasPrefix(failed.Code, "57P")
}
