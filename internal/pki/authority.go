package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"path/filepath"
	"time"
)

// backdate is how far in the past a certificate's validity begins, for
// readers whose clock is a little behind ours.
const backdate = 5 * time.Minute

// authority signs certificates. A renewal keeps key and name, so that what the
// old certificate signed is verified by the new one, and the other way round.
type authority struct {
	name        string
	file        string            // of the certificate
	certificate *x509.Certificate // nil until it was made
	key         *ecdsa.PrivateKey
}

// loadAuthority reads DIR/name.crt and DIR/name.key. The key is made when
// neither is there.
func loadAuthority(dir, name string) (*authority, error) {
	a := &authority{name: name, file: filepath.Join(dir, name+".crt")}
	keyFile := filepath.Join(dir, name+".key")
	var err error
	if a.certificate, err = readCertificate(a.file); err != nil {
		return nil, err
	}
	if a.certificate == nil {
		a.key, err = ensureKey(keyFile)
		return a, err
	}
	if a.key, err = readKey(keyFile); err != nil {
		return nil, err
	}
	if a.key == nil {
		return nil, fmt.Errorf("%s is missing, but %s is there: restore the key, or delete the certificate too for a new authority",
			keyFile, a.file)
	}
	if !samePublicKey(a.certificate.PublicKey, a.key.Public()) {
		return nil, fmt.Errorf("%s does not belong to %s: restore the two from the same copy, or delete both for a new authority",
			keyFile, a.file)
	}
	return a, nil
}

// refresh makes the certificate when there is none, or when it is due, and
// tells whether it did.
func (a *authority) refresh(lifetime time.Duration, now time.Time) (changed bool, err error) {
	if a.certificate != nil && !due(a.certificate, lifetime, now) {
		return false, nil
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "taskctl-" + a.name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	certificate, err := sign(template, template, a.key.Public(), a.key)
	if err != nil {
		return false, fmt.Errorf("sign %s: %w", a.file, err)
	}
	if err := writeFile(a.file, encodeCertificate(certificate)); err != nil {
		return false, err
	}
	a.certificate = certificate
	return true, nil
}

// pool holds the authority alone.
func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// sign gives the template a serial number and signs it.
func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	// 127 random bits: unique without a counter, and positive (RFC 5280, 4.1.2.2).
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// renewAt is two thirds of a certificate's life after it was made. A lifetime
// that was configured shorter since counts instead of the certificate's own.
func renewAt(certificate *x509.Certificate, lifetime time.Duration) time.Time {
	made := certificate.NotBefore.Add(backdate)
	life := min(certificate.NotAfter.Sub(made), lifetime)
	return made.Add(life / 3 * 2)
}

// due tells that a certificate has to be replaced: it has lived two thirds of
// its life, or was made by a clock that was ahead.
func due(certificate *x509.Certificate, lifetime time.Duration, now time.Time) bool {
	return now.Before(certificate.NotBefore) || !now.Before(renewAt(certificate, lifetime))
}

func samePublicKey(a, b crypto.PublicKey) bool {
	key, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && key.Equal(b)
}
