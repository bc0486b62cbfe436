package mysql

import (
	"crypto/tls"
	"testing"
)

func TestTLSIsUsedWithTheServersName(t *testing.T) {
	config := Config{DSN: "mysql://u@tcp(host:3306)/db?tls=false", TLS: &tls.Config{MinVersion: tls.VersionTLS13}}
	config.setDefaults()
	parsed, err := config.parse()
	if err != nil {
		t.Fatal(err)
	}
	if parsed.TLS == nil || parsed.TLS.ServerName != "host" || parsed.TLS.MinVersion != tls.VersionTLS13 {
		t.Errorf("%+v", parsed.TLS)
	}
	if config.TLS.ServerName != "" {
		t.Error("the caller's settings were changed")
	}
}
