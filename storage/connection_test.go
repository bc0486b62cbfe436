package storage_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taskctl-dev/taskctl/storage"
)

func TestFilesOfAConnectionThatAreWrongAreNamed(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.pem")
	if err := os.WriteFile(text, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if config, err := (storage.TLS{}).Config(); config != nil || err != nil {
		t.Errorf("nothing set: %v, %v", config, err)
	}
	if config, err := (storage.TLS{SkipVerify: true}).Config(); err != nil || !config.InsecureSkipVerify {
		t.Errorf("skipVerify: %v, %v", config, err)
	}
	for want, files := range map[string]storage.TLS{
		"/no/ca.pem":                         {CAFile: "/no/ca.pem"},
		"there is no certificate in " + text: {CAFile: text},
		"go together":                        {CertFile: text},
		"read the client certificate":        {CertFile: text, KeyFile: text},
	} {
		if _, err := files.Config(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", files, err, want)
		}
	}
}
