package embedded

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// readyInterval is short because every millisecond of it is time that the user
// waits for. A refused connection costs next to nothing.
const readyInterval = 10 * time.Millisecond

// readyProbe asks an API server whether it is ready, with the server's own
// loopback identity, which works whatever its authentication settings are.
type readyProbe struct {
	client kubernetes.Interface
}

func newReadyProbe(loopback *rest.Config) (*readyProbe, error) {
	config := rest.CopyConfig(loopback)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for the readiness check: %w", err)
	}
	return &readyProbe{client}, nil
}

// wait returns nil once the server is ready, or ctx's error.
func (p *readyProbe) wait(ctx context.Context) error {
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for !p.ready(ctx) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (p *readyProbe) ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := p.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return false
	}
	// /readyz does not wait for the namespaces that every cluster has.
	_, err := p.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
	return err == nil
}
