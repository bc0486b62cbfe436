package pki

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOpenMakesAProtectedFolderAndKeepsIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	open(t, dir, Options{})
	if mode := modeOf(t, dir); mode != 0o700 {
		t.Errorf("the folder has mode %o, want 700", mode)
	}
	first := contents(t, dir)
	// Two files each: 2 authorities, 5 clients, 3 servers; and sa.key with
	// sa.pub.
	if len(first) != 22 {
		t.Errorf("there are %d files, want 22", len(first))
	}
	for name := range first {
		if mode := modeOf(t, filepath.Join(dir, name)); mode != 0o600 {
			t.Errorf("%s has mode %o, want 600", name, mode)
		}
	}
	open(t, dir, Options{})
	for name, content := range contents(t, dir) {
		if content != first[name] {
			t.Errorf("%s was replaced by a second start", name)
		}
	}
}

func TestOpenReplacesWhatIsNotValid(t *testing.T) {
	day := 24 * time.Hour
	for name, test := range map[string]struct {
		later   time.Duration
		options Options
		want    map[string]bool // which certificates change
	}{
		"nothing before two thirds of life":     {later: 240 * day, want: map[string]bool{}},
		"leaves after two thirds of life":       {later: 244 * day, want: map[string]bool{"operator": true, "apiserver": true}},
		"leaves that have expired":              {later: 400 * day, want: map[string]bool{"operator": true, "apiserver": true}},
		"authorities after two thirds of life":  {later: 2500 * day, want: map[string]bool{"operator": true, "apiserver": true, "ca": true}},
		"authorities that have expired":         {later: 4000 * day, want: map[string]bool{"operator": true, "apiserver": true, "ca": true}},
		"all that a clock ahead has made":       {later: -day, want: map[string]bool{"operator": true, "apiserver": true, "ca": true}},
		"leaves when their lifetime is shorter": {later: day, options: Options{Lifetime: time.Hour}, want: map[string]bool{"operator": true, "apiserver": true}},
		"a server that got a further name":      {options: Options{ExtraNames: map[Serving][]string{APIServer: {"gateway.example", "192.0.2.1"}}}, want: map[string]bool{"apiserver": true}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			open(t, dir, Options{})
			before := contents(t, dir)
			now := time.Now().Add(test.later)
			test.options.now = func() time.Time { return now }
			p := open(t, dir, test.options)
			after := contents(t, dir)
			for _, name := range []string{"operator", "apiserver", "ca"} {
				if changed := before[name+".crt"] != after[name+".crt"]; changed != test.want[name] {
					t.Errorf("%s.crt: replaced is %v, want %v", name, changed, test.want[name])
				}
				if before[name+".key"] != after[name+".key"] {
					t.Errorf("%s.key was replaced", name)
				}
			}
			verify(t, p, now)
		})
	}
}

func TestARenewedAuthorityAndItsOldCertificatesVerifyEachOther(t *testing.T) {
	dir := t.TempDir()
	old := open(t, dir, Options{Lifetime: 9 * 365 * 24 * time.Hour})
	oldAuthority := old.authorities[clusterAuthority]
	oldLeaf := old.leaves[string(Operator)].certificate
	now := time.Now().Add(7 * 365 * 24 * time.Hour)
	renewed := open(t, dir, Options{Lifetime: 9 * 365 * 24 * time.Hour, now: func() time.Time { return now }})

	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := oldLeaf.Verify(x509.VerifyOptions{Roots: renewed.authorities[clusterAuthority].pool(), CurrentTime: now, KeyUsages: usages}); err != nil {
		t.Errorf("an old certificate with the new authority: %v", err)
	}
	newLeaf := renewed.leaves[string(Operator)].certificate
	if newLeaf.SerialNumber.Cmp(oldLeaf.SerialNumber) == 0 {
		t.Fatal("the certificate was not renewed")
	}
	if _, err := newLeaf.Verify(x509.VerifyOptions{Roots: oldAuthority.pool(), CurrentTime: now, KeyUsages: usages}); err != nil {
		t.Errorf("a new certificate with the old authority: %v", err)
	}
}

func TestDamagedFilesAreNamed(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(t *testing.T, dir string)
		want   []string
	}{
		"a certificate that is no PEM": {write("operator.crt", "nonsense"), []string{"operator.crt is damaged", "delete it"}},
		"a certificate cut in half":    {write("apiserver.crt", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"), []string{"apiserver.crt is damaged"}},
		"a key that is a certificate":  {copyFile("ca.crt", "aggregator.key"), []string{"aggregator.key is damaged"}},
		"an authority's key":           {write("ca.key", ""), []string{"ca.key is damaged"}},
		"the service-account key":      {write("sa.key", "x"), []string{"sa.key is damaged"}},
		"an authority without its key": {remove("front-proxy-ca.key"), []string{"front-proxy-ca.key is missing", "front-proxy-ca.crt is there", "restore"}},
		"an authority with another's key": {copyFile("front-proxy-ca.key", "ca.key"),
			[]string{"ca.key does not belong to", "ca.crt", "restore"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			open(t, dir, Options{})
			test.damage(t, dir)
			_, err := Open(dir, Options{})
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %q: %v", part, err)
				}
			}
		})
	}
}

func TestWhatACrashLeftHalfMadeIsMade(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir string){
		"an authority's key only":     remove("ca.crt"),
		"a client's key only":         remove("operator.crt"),
		"a client's certificate only": remove("operator.key"),
		"another client's key":        copyFile("aggregator.key", "operator.key"),
		"only a temporary file":       write(".operator.crt.123", "half"),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			open(t, dir, Options{})
			damage(t, dir)
			verify(t, open(t, dir, Options{}), time.Now())
		})
	}
}

func TestAFolderThatCanNotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(file, "pki"), Options{}); err == nil || !strings.Contains(err.Error(), "folder of certificates") {
		t.Errorf("error %v, want one about the folder of certificates", err)
	}
}
