package config

import (
	"strconv"
	"time"
)

// TLS says how a connection to a backend is protected. The zero value leaves
// it to the endpoint.
type TLS struct {
	// CAFile, CertFile and KeyFile are PEM files: the authorities that the
	// server's certificate is checked with, and our own certificate and key.
	CAFile   string `json:"caFile,omitempty"`
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
	// SkipVerify takes any certificate of the server.
	SkipVerify bool `json:"skipVerify,omitempty"`
}

// IsZero says that nothing is set.
func (t TLS) IsZero() bool { return t == TLS{} }

func (t *TLS) read(r reader) error {
	err := r.fields(map[string]func(reader) error{
		"caFile":     func(r reader) error { return r.text(&t.CAFile) },
		"certFile":   func(r reader) error { return r.text(&t.CertFile) },
		"keyFile":    func(r reader) error { return r.text(&t.KeyFile) },
		"skipVerify": func(r reader) error { return r.boolean(&t.SkipVerify) },
	})
	if err == nil && (t.CertFile == "") != (t.KeyFile == "") {
		return r.errorf("certFile and keyFile go together: give both or neither")
	}
	return err
}

// Pool bounds the connections to a SQL database. Zero is the default of the
// kind of database.
type Pool struct {
	// MaxOpen is the most connections at once, MaxIdle the most that are kept
	// when nobody uses them.
	MaxOpen int `json:"maxOpen,omitempty"`
	MaxIdle int `json:"maxIdle,omitempty"`
	// MaxLifeTime and MaxIdleLifeTime are how long a connection is used in
	// all, and kept unused.
	MaxLifeTime     time.Duration `json:"maxLifeTime,omitempty"`
	MaxIdleLifeTime time.Duration `json:"maxIdleLifeTime,omitempty"`
}

// minPoolOpen is what a store needs: one connection writes, one renews the
// ownership, one reads.
const minPoolOpen = 3

func (p *Pool) read(r reader) error {
	return r.fields(map[string]func(reader) error{
		"maxOpen": func(r reader) error {
			err := r.count(&p.MaxOpen)
			if err == nil && p.MaxOpen != 0 && p.MaxOpen < minPoolOpen {
				return r.errorf("a store needs %d connections at least: one writes, one renews the ownership, the others read", minPoolOpen)
			}
			return err
		},
		"maxIdle":         func(r reader) error { return r.count(&p.MaxIdle) },
		"maxLifeTime":     func(r reader) error { return r.duration(&p.MaxLifeTime) },
		"maxIdleLifeTime": func(r reader) error { return r.duration(&p.MaxIdleLifeTime) },
	})
}

// count reads a whole number that is not negative.
func (r reader) count(into *int) error {
	var text string
	if err := r.text(&text); err != nil {
		return err
	}
	value, err := strconv.Atoi(text)
	if err != nil || value < 0 {
		return r.errorf("it must be a whole number, 0 or more")
	}
	*into = value
	return nil
}

// duration reads a length of time such as 5m.
func (r reader) duration(into *time.Duration) error {
	var text string
	if err := r.text(&text); err != nil {
		return err
	}
	value, err := time.ParseDuration(text)
	if err != nil || value < 0 {
		return r.errorf("it must be a length of time such as 90s or 5m")
	}
	*into = value
	return nil
}
