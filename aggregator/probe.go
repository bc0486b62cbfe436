package aggregator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// probe asks the server's own /readyz over the network until it answers 200.
func probe(ctx context.Context, address net.Addr, certFile, keyFile string) error {
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS12,
		// The server is known by its very certificate, whatever names and
		// issuer it has: this is not the place to check those.
		InsecureSkipVerify:    true,
		VerifyPeerCertificate: servesFile(certFile, keyFile),
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	url := "https://" + address.String() + "/readyz?verbose"
	return poll(ctx, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("ask the aggregator whether it is ready: %w", err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
		if err != nil {
			return fmt.Errorf("ask the aggregator whether it is ready: %w", err)
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("the aggregator is not ready: %s", strings.Join(failedChecks(string(body)), ", "))
		}
		return nil
	})
}

// servesFile accepts the certificate in this file and no other.
func servesFile(certFile, keyFile string) func([][]byte, [][]*x509.Certificate) error {
	return func(served [][]byte, _ [][]*x509.Certificate) error {
		expected, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return err
		}
		if len(served) == 0 || string(served[0]) != string(expected.Certificate[0]) {
			return errors.New("another certificate is served: is another program listening there?")
		}
		return nil
	}
}

// failedChecks takes the lines of the checks that failed out of a verbose
// answer, which marks them [-].
func failedChecks(body string) []string {
	var failed []string
	for _, line := range strings.Split(body, "\n") {
		if name, found := strings.CutPrefix(line, "[-]"); found {
			failed = append(failed, name)
		}
	}
	if len(failed) == 0 {
		failed = append(failed, strings.TrimSpace(body))
	}
	return failed
}
