package pki

import (
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, dir string, options Options) *PKI {
	t.Helper()
	p, err := Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// verify checks that every certificate is valid at that time, and on disk.
func verify(t *testing.T, p *PKI, now time.Time) {
	t.Helper()
	for name, l := range p.leaves {
		options := x509.VerifyOptions{Roots: p.signer(l.request).pool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{l.usage}}
		if _, err := l.certificate.Verify(options); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		read, err := readCertificate(l.files.Cert)
		if err != nil || !read.Equal(l.certificate) {
			t.Errorf("%s is not what is used, error %v", l.files.Cert, err)
		}
		if key, err := readKey(l.files.Key); err != nil || !samePublicKey(l.certificate.PublicKey, key.Public()) {
			t.Errorf("%s does not belong to its certificate, error %v", l.files.Key, err)
		}
	}
}

// contents are the folder's files, without temporary ones.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			t.Errorf("%s was left behind", entry.Name())
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(content)
	}
	return all
}

func modeOf(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func write(name, content string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func copyFile(from, to string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		content, err := os.ReadFile(filepath.Join(dir, from))
		if err != nil {
			t.Fatal(err)
		}
		write(to, string(content))(t, dir)
	}
}

func remove(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}
