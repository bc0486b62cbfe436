package pki

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"
)

func TestClientsHaveTheNamesAndGroupsOfTheirAccounts(t *testing.T) {
	p := open(t, t.TempDir(), Options{})
	for id, want := range map[Client]string{
		Admin:             "taskctl-admin [system:masters]",
		ControllerManager: "system:kube-controller-manager []",
		FrontProxy:        "front-proxy-client []",
		Operator:          "system:serviceaccount:taskctl-system:taskctl-operator [system:serviceaccounts system:serviceaccounts:taskctl-system]",
		Aggregator:        "system:serviceaccount:taskctl-system:taskctl-aggregator [system:serviceaccounts system:serviceaccounts:taskctl-system]",
	} {
		certificate := p.leaves[string(id)].certificate
		got := certificate.Subject.CommonName + " [" + strings.Join(certificate.Subject.Organization, " ") + "]"
		if got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
}

func TestOnlyTheFrontProxyIsSignedByTheFrontProxyAuthority(t *testing.T) {
	p := open(t, t.TempDir(), Options{})
	for name, l := range p.leaves {
		byFrontProxy := l.certificate.CheckSignatureFrom(p.authorities[frontProxyAuthority].certificate) == nil
		if want := name == string(FrontProxy); byFrontProxy != want {
			t.Errorf("%s is signed by the front-proxy authority: %v, want %v", name, byFrontProxy, want)
		}
	}
}

func TestServersHaveTheNamesThatClientsCheck(t *testing.T) {
	p := open(t, t.TempDir(), Options{})
	for serving, names := range map[Serving][]string{
		APIServer:         {"127.0.0.1", "::1", "localhost", "kubernetes.default.svc", "kubernetes", "10.96.0.1"},
		AggregatorServing: {"127.0.0.1", "localhost", "taskctl-aggregator.taskctl-system.svc"},
		WebhooksServing:   {"127.0.0.1", "localhost", "taskctl-webhooks.taskctl-system.svc"},
	} {
		shown, err := p.GetCertificate(serving)(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := shown.Leaf.VerifyHostname(name); err != nil {
				t.Errorf("%s: %v", serving, err)
			}
		}
	}
}

func TestSignMakesACertificateForAnyUser(t *testing.T) {
	p := open(t, t.TempDir(), Options{Lifetime: time.Hour})
	certificate, key, err := p.Sign("jane", "readers", "writers")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(certificate)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Subject.CommonName != "jane" || !sameElements(parsed.Subject.Organization, []string{"writers", "readers"}) {
		t.Errorf("the subject is %s", parsed.Subject)
	}
	if _, err := parsed.Verify(x509.VerifyOptions{Roots: p.authorities[clusterAuthority].pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(key), "PRIVATE KEY") {
		t.Error("there is no key")
	}
}
