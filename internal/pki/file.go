package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	certificateBlock = "CERTIFICATE"
	// kube-apiserver reads the public half out of an EC key in this form, and
	// not in PKCS #8.
	privateKeyBlock = "EC PRIVATE KEY"
	publicKeyBlock  = "PUBLIC KEY"
)

// writeFile replaces path by an atomic rename, mode 0600, so that a reader
// sees either the old content or the new, and a crash leaves one of them.
func writeFile(path string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // does nothing after the rename
	_, err = temporary.Write(content)
	if err == nil {
		err = temporary.Sync()
	}
	if err := errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}

// readCertificate returns nil without an error when there is no such file.
func readCertificate(path string) (*x509.Certificate, error) {
	block, err := readBlock(path, certificateBlock)
	if block == nil || err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(block)
	if err != nil {
		return nil, corrupt(path, err)
	}
	return certificate, nil
}

// readKey returns nil without an error when there is no such file.
func readKey(path string) (*ecdsa.PrivateKey, error) {
	block, err := readBlock(path, privateKeyBlock)
	if block == nil || err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(block)
	if err != nil {
		return nil, corrupt(path, err)
	}
	return key, nil
}

func readBlock(path, blockType string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil || block.Type != blockType {
		return nil, corrupt(path, fmt.Errorf("it is not a PEM file that begins with a %s", blockType))
	}
	return block.Bytes, nil
}

func corrupt(path string, err error) error {
	return fmt.Errorf("%s is damaged: %w; restore it from a copy, or delete it to have a new one made", path, err)
}

// ensureKey reads a private key, or makes and stores one.
func ensureKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := readKey(path)
	if key != nil || err != nil {
		return key, err
	}
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	content, err := encodeKey(made)
	if err != nil {
		return nil, err
	}
	return made, writeFile(path, content)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: privateKeyBlock, Bytes: der}), nil
}

func encodeCertificate(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: certificate.Raw})
}
