package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// schemes are the beginnings of endpoints, one a kind of database.
var schemes = [...]string{"etcd", "sqlite", "postgres", "postgresql", "mysql", "http", "https"}

// Scheme is the kind of database that an endpoint names, "" if it names none.
func Scheme(endpoint string) string {
	scheme, _, found := strings.Cut(endpoint, "://")
	if !found {
		return ""
	}
	for _, known := range schemes {
		if scheme == known {
			return scheme
		}
	}
	return ""
}

// CheckEndpoint says why an endpoint doesn't parse. The error holds no
// password, and therefore nothing of what was written but the scheme.
func CheckEndpoint(endpoint string) error {
	scheme := Scheme(endpoint)
	rest := strings.TrimPrefix(endpoint, scheme+"://")
	switch scheme {
	case "":
		return fmt.Errorf("the endpoint has no scheme that is known; there are: %s", strings.Join(schemes[:], "://, ")+"://")
	case "etcd":
		if rest != "" {
			return errors.New("etcd:// is the embedded etcd and takes nothing more; an existing one is https://HOST:2379")
		}
		return nil
	case "sqlite":
		if rest == "" || strings.HasSuffix(rest, "/") {
			return errors.New("sqlite:// needs the path of a file")
		}
		return nil
	case "mysql":
		return checkMySQL(rest)
	}
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return fmt.Errorf("the %s:// URL doesn't parse", scheme) // the URL is part of err
	}
	if parsed.Hostname() == "" && parsed.Query().Get("host") == "" {
		return fmt.Errorf("the %s:// URL names no host", scheme)
	}
	return nil
}

// checkMySQL checks the driver's own form, user:password@tcp(host:port)/name.
func checkMySQL(rest string) error {
	at := strings.LastIndex(rest, "@")
	open := strings.Index(rest[at+1:], "(")
	end := strings.Index(rest[at+1:], ")/")
	if open < 0 || end < open {
		return errors.New("the mysql:// endpoint is not of the form mysql://USER:PASSWORD@tcp(HOST:PORT)/DATABASE")
	}
	protocol, address := rest[at+1:][:open], rest[at+1:][open+1:end]
	if protocol == "tcp" {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return errors.New("the address of the mysql:// endpoint is not HOST:PORT")
		}
	}
	return nil
}

// hidden stands in the place of a password; it is what net/url uses.
const hidden = "xxxxx"

// HidesPassword says that an endpoint that Redacted returned had a password.
func HidesPassword(redacted string) bool {
	return strings.Contains(redacted, ":"+hidden+"@") || strings.Contains(redacted, "password="+hidden)
}

// Redacted is an endpoint without its password, for people.
func Redacted(endpoint string) string {
	scheme := Scheme(endpoint)
	if scheme == "mysql" {
		rest := strings.TrimPrefix(endpoint, "mysql://")
		at := strings.LastIndex(rest, "@")
		user, _, hasPassword := strings.Cut(rest[:max(at, 0)], ":")
		if hasPassword {
			return "mysql://" + user + ":" + hidden + rest[at:]
		}
		return endpoint
	}
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return scheme + "://…"
	}
	query := parsed.Query()
	if _, hasPassword := parsed.User.Password(); !hasPassword && !query.Has("password") {
		return endpoint
	}
	if query.Has("password") {
		query.Set("password", hidden)
		parsed.RawQuery = query.Encode()
	}
	return parsed.Redacted()
}
