package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/urfave/cli/v2"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// partFlags are the flags of `operator run` and `aggregator run`: one part
// alone, for a real cluster.
func partFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "kubeconfig", Usage: "`FILE` that says how to reach the cluster", DefaultText: "the Pod's own identity, else KUBECONFIG"},
		&cli.StringFlag{Name: "tls-cert-file", Usage: "serving certificate `FILE`, read again when it changes"},
		&cli.StringFlag{Name: "tls-key-file", Usage: "`FILE` with the certificate's key"},
	}
}

// clusterConfig reaches the cluster with the identity that the flags, the Pod
// or KUBECONFIG give.
func (p *program) clusterConfig(c *cli.Context) (*rest.Config, error) {
	if file := c.String("kubeconfig"); file != "" {
		return clientcmd.BuildConfigFromFlags("", file)
	}
	config, err := rest.InClusterConfig()
	if !errors.Is(err, rest.ErrNotInCluster) {
		return config, err
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("there is no cluster: %w; run it in a Pod, or name a file with --kubeconfig", err)
	}
	return config, nil
}

// partLog logs to standard error, which is where a Pod's log comes from.
func partLog(w io.Writer, verbosity int) logr.Logger {
	return logr.FromSlogHandler(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.Level(-verbosity)}))
}

// servingCertificate reads certificate and key again when one of the files has
// changed, so that a renewed Secret needs no restart.
type servingCertificate struct {
	certFile, keyFile string

	mu       sync.Mutex
	modified [2]time.Time
	loaded   *tls.Certificate
}

func (s *servingCertificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	modified, err := s.times()
	if err == nil && s.loaded != nil && modified == s.modified {
		return s.loaded, nil
	}
	if err == nil {
		var certificate tls.Certificate
		if certificate, err = tls.LoadX509KeyPair(s.certFile, s.keyFile); err == nil {
			s.loaded, s.modified = &certificate, modified
		}
	}
	if s.loaded != nil {
		return s.loaded, nil // a replacement that is half written is seen again
	}
	return nil, fmt.Errorf("reading the serving certificate: %w", err)
}

func (s *servingCertificate) times() (times [2]time.Time, err error) {
	for i, file := range []string{s.certFile, s.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return times, err
		}
		times[i] = info.ModTime()
	}
	return times, nil
}
