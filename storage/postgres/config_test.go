package postgres

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/taskctl-dev/taskctl/storage/backend/sqlstore"
)

// TLS that is asked for is never left out, whatever the DSN allows.
func TestTLSIsUsedForEveryHost(t *testing.T) {
	for _, mode := range []string{"", "?sslmode=prefer", "?sslmode=allow", "?sslmode=disable", "?sslmode=require"} {
		config := Config{DSN: "postgres://u@first:1,second:2/db" + mode, TLS: &tls.Config{InsecureSkipVerify: true}}
		config.setDefaults()
		parsed, _, err := config.parse()
		if err != nil {
			t.Fatal(err)
		}
		if parsed.TLSConfig == nil || parsed.TLSConfig.ServerName != "first" || !parsed.TLSConfig.InsecureSkipVerify {
			t.Errorf("%s: %+v", mode, parsed.TLSConfig)
		}
		if len(parsed.Fallbacks) != 1 || parsed.Fallbacks[0].Host != "second" || parsed.Fallbacks[0].TLSConfig == nil || parsed.Fallbacks[0].TLSConfig.ServerName != "second" {
			t.Errorf("%s: the other attempts are %+v", mode, parsed.Fallbacks)
		}
	}
}

func TestReadersAreBounded(t *testing.T) {
	config := Config{IdleReaders: 2, ReaderLife: time.Minute, ReaderIdleLife: time.Second}
	config.setDefaults()
	if got, want := config.readerLimits(), (sqlstore.PoolLimits{Open: 8, Idle: 2, Life: time.Minute, IdleLife: time.Second}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
