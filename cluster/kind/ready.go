package kind

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/taskctl-dev/taskctl/internal/pki"
)

// readyInterval is how often the API server and the Node are asked whether they
// are ready. Each question takes a millisecond or two.
const readyInterval = 100 * time.Millisecond

// URL is the API server's address on this machine.
func URL(port int) string { return "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// apiServerProbe asks the API server in the node.
type apiServerProbe struct{ client *kubernetes.Clientset }

func newAPIServerProbe(identities *pki.PKI, port int) (*apiServerProbe, error) {
	client, err := kubernetes.NewForConfig(identities.RESTConfig(URL(port), pki.Admin))
	return &apiServerProbe{client}, err
}

// await waits until /readyz answers 200 and the namespace "default" is there.
func (p *apiServerProbe) await(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, readyInterval, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, askLimit)
		defer cancel()
		if err := p.client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
			return false, nil
		}
		_, err := p.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err == nil, nil
	})
}

// RunNode calls ready once the node is complete and its kubelet says that Pods
// can run on it, since this start; then it waits for the end of ctx.
func (c *Cluster) RunNode(ctx context.Context, ready func()) error {
	server, err := newAPIServerProbe(c.PKI, c.Port)
	if err != nil {
		return err
	}
	select {
	case <-c.made:
	case <-ctx.Done():
		return nil
	}
	since := time.Now()
	last := "it has not registered itself"
	err = wait.PollUntilContextCancel(ctx, readyInterval, true, func(ctx context.Context) (bool, error) {
		node, err := server.client.CoreV1().Nodes().Get(ctx, c.Node.Name(), metav1.GetOptions{})
		if err != nil {
			last = err.Error()
			return false, nil
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				last = condition.Message
				// A heartbeat of before the stop says nothing.
				fresh := c.create != nil || condition.LastHeartbeatTime.After(c.started)
				return fresh && condition.Status == corev1.ConditionTrue, nil
			}
		}
		return false, nil
	})
	if err != nil {
		if time.Since(since) > askLimit {
			return fmt.Errorf("the Node %s is not ready: %s", c.Node.Name(), last)
		}
		return nil
	}
	ready()
	<-ctx.Done()
	return nil
}
