package operator

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/go-logr/logr"
)

// checkLimit bounds the handshake with ourselves.
const checkLimit = 5 * time.Second

// checkServed connects to the listener's address and makes sure that whoever
// answers there serves the certificate that GetCertificate returns. That is
// known as soon as the server's part of the handshake has arrived, so it does
// not matter whether the server then wants a certificate of us.
func checkServed(ctx context.Context, options WebhookOptions) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	address := options.Listener.Addr()
	want, err := options.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		return fmt.Errorf("loading the webhooks' certificate: %w", err)
	}
	if len(want.Certificate) == 0 {
		return errors.New("loading the webhooks' certificate: it is empty")
	}

	seen, right := false, false
	dialer := tls.Dialer{Config: &tls.Config{
		InsecureSkipVerify: true, // which certificate it is gets compared below
		VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			seen = true
			right = len(raw) > 0 && bytes.Equal(raw[0], want.Certificate[0])
			return nil
		},
	}}
	connection, err := dialer.DialContext(ctx, address.Network(), address.String())
	if err == nil {
		_ = connection.Close() // it carried nothing
	}
	switch {
	case right:
		return nil
	case seen:
		return fmt.Errorf("another server answers on %s, the webhooks' address", address)
	default:
		return fmt.Errorf("connecting to the webhooks on %s: %w", address, err)
	}
}

// newErrorLog passes net/http's complaints on. Handshakes that clients break
// off are no errors of ours.
func newErrorLog(logger logr.Logger) *log.Logger {
	return log.New(errorLog{logger}, "", 0)
}

type errorLog struct{ logger logr.Logger }

// Write implements io.Writer.
func (l errorLog) Write(line []byte) (int, error) {
	level := 0
	if strings.Contains(string(line), "TLS handshake error") {
		level = 1
	}
	l.logger.V(level).Info(strings.TrimSpace(string(line)))
	return len(line), nil
}
