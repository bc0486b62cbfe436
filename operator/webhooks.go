package operator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// Paths of the webhooks, as the webhook configurations name them.
const (
	PathDefaultTask  = "/default-example-example-com-v1-task"
	PathValidateTask = "/validate-example-example-com-v1-task"
	// PathHealthz answers 200 while the server runs.
	PathHealthz = "/healthz"
)

const (
	// An admission request's own limit is 30 s at most.
	webhookTimeout = 30 * time.Second
	// webhookStopLimit is how long answers in progress, which take
	// milliseconds, may take at the end.
	webhookStopLimit = 500 * time.Millisecond
)

// WebhookOptions say where and how the webhooks are served. Listener and
// GetCertificate are required.
type WebhookOptions struct {
	// Listener accepts plain TCP connections; TLS is done on them. RunWebhooks
	// closes it, so each run needs one of its own.
	Listener net.Listener
	// GetCertificate returns the certificate to serve, at each handshake.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ClientCAs, if set, are the authorities of which a caller must show a
	// certificate.
	ClientCAs *x509.CertPool
	// Log defaults to no logging.
	Log logr.Logger
	// Clock says what time it is; the default is the real one.
	Clock clock.PassiveClock
}

// RunWebhooks serves the Task's admission webhooks until ctx ends, and returns
// nil then. It calls ready once, when a connection to the listener's address
// was answered with the certificate that it serves. It may be called again in
// the same process after it returned.
//
// controller-runtime's own server is of no use here: it takes no listener and
// listens on all addresses.
func RunWebhooks(ctx context.Context, options WebhookOptions, ready func()) error {
	if options.Listener == nil || options.GetCertificate == nil {
		return errors.New("operator: WebhookOptions.Listener and GetCertificate are required")
	}
	defer options.Listener.Close() //nolint:errcheck // closed already after Serve
	if options.Log.GetSink() == nil {
		options.Log = logr.Discard()
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	logf.SetLogger(options.Log)
	handler, err := webhookHandler(options.Clock, options.Log)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           handler,
		Protocols:         &http.Protocols{},
		TLSConfig:         serverTLS(options),
		ReadHeaderTimeout: webhookTimeout,
		ReadTimeout:       webhookTimeout,
		WriteTimeout:      webhookTimeout,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          newErrorLog(options.Log),
	}
	// Only HTTP/1.1: the end of an HTTP/2 connection takes a second even when
	// nothing is in flight (goAwayTimeout in net/http).
	server.Protocols.SetHTTP1(true)
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(options.Listener, "", "") }()

	err = checkServed(ctx, options)
	if err == nil {
		ready()
		select {
		case <-ctx.Done():
		case failure := <-served:
			served <- failure // for stopServer
		}
	}
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, stopServer(server, served))
}

// stopServer lets answers in progress end, or cuts them short, and returns what
// ended the server if it was anything else.
func stopServer(server *http.Server, served <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), webhookStopLimit)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		_ = server.Close() // the listener's own error comes through served
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving webhooks: %w", err)
	}
	return nil
}

func webhookHandler(clock clock.PassiveClock, log logr.Logger) (http.Handler, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, fmt.Errorf("registering the operator's kinds: %w", err)
	}
	defaulting := &admission.Webhook{Handler: onlyLabels{
		next:    admission.WithDefaulter(scheme, labeller{}),
		decoder: admission.NewDecoder(scheme),
	}}
	validating := admission.WithValidator[*taskv1.Task](scheme, validator{clock: clock})

	mux := http.NewServeMux()
	for path, webhook := range map[string]*admission.Webhook{PathDefaultTask: defaulting, PathValidateTask: validating} {
		handler, err := admission.StandaloneWebhook(webhook, admission.StandaloneOptions{Logger: log, MetricsPath: path})
		if err != nil {
			return nil, fmt.Errorf("setting up the webhook %s: %w", path, err)
		}
		mux.Handle("POST "+path, handler)
	}
	mux.HandleFunc("GET "+PathHealthz, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	return mux, nil
}

func serverTLS(options WebhookOptions) *tls.Config {
	config := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: options.GetCertificate,
	}
	if options.ClientCAs != nil {
		config.ClientCAs = options.ClientCAs
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config
}
