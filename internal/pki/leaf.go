package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"time"
)

// request describes the certificate of one server or client.
type request struct {
	name    string // of the files, without suffix
	subject pkix.Name
	usage   x509.ExtKeyUsage
	names   []string // DNS names and IP addresses of a server
}

// leaf is the certificate of one server or client.
type leaf struct {
	request
	files       Files
	certificate *x509.Certificate // nil until it was made
	key         *ecdsa.PrivateKey
}

// loadLeaf reads the two files. The key is made when it is missing.
func loadLeaf(files Files, r request) (*leaf, error) {
	l := &leaf{request: r, files: files}
	var err error
	if l.certificate, err = readCertificate(files.Cert); err != nil {
		return nil, err
	}
	l.key, err = ensureKey(files.Key)
	return l, err
}

// refresh makes the certificate when there is none, when it is due, was signed
// by another authority or made for other names, and tells whether it did. It
// keeps the key: certificate and key are two files, and so no reader ever sees
// a pair that does not match.
func (l *leaf) refresh(a *authority, lifetime time.Duration, now time.Time) (changed bool, err error) {
	if l.certificate != nil && !due(l.certificate, lifetime, now) && l.describes(l.certificate, l.key, a) {
		return false, nil
	}
	certificate, err := l.issue(l.key.Public(), a, lifetime, now)
	if err != nil {
		return false, fmt.Errorf("sign %s: %w", l.files.Cert, err)
	}
	if err := writeFile(l.files.Cert, encodeCertificate(certificate)); err != nil {
		return false, err
	}
	l.certificate = certificate
	return true, nil
}

func (l *leaf) tls() *tls.Certificate {
	return &tls.Certificate{
		Certificate: [][]byte{l.certificate.Raw},
		PrivateKey:  l.key,
		Leaf:        l.certificate,
	}
}

func (r request) issue(public crypto.PublicKey, a *authority, lifetime time.Duration, now time.Time) (*x509.Certificate, error) {
	dns, ips := splitNames(r.names)
	return sign(&x509.Certificate{
		Subject:               r.subject,
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{r.usage},
		BasicConstraintsValid: true,
		DNSNames:              dns,
		IPAddresses:           ips,
	}, a.certificate, public, a.key)
}

// describes tells whether the certificate is what the request would give,
// apart from its time.
func (r request) describes(certificate *x509.Certificate, key *ecdsa.PrivateKey, a *authority) bool {
	if !samePublicKey(certificate.PublicKey, key.Public()) || certificate.CheckSignatureFrom(a.certificate) != nil {
		return false
	}
	if certificate.Subject.CommonName != r.subject.CommonName ||
		!sameElements(certificate.Subject.Organization, r.subject.Organization) ||
		!slices.Contains(certificate.ExtKeyUsage, r.usage) {
		return false
	}
	for _, name := range r.names {
		if certificate.VerifyHostname(name) != nil {
			return false
		}
	}
	return true
}

func sameElements(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
