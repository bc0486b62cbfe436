package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/taskctl-dev/taskctl/storage/endpoint"
)

// storeDialLimit is for a store on another machine.
const storeDialLimit = 5 * time.Second

// reachStore connects to the store once. The API server itself tries for 20
// seconds, and then does not say where.
func reachStore(ctx context.Context, store endpoint.Endpoint) error {
	if store.URL == "" {
		return errors.New("no storage endpoint was given")
	}
	u, err := url.Parse(store.URL)
	if err != nil {
		return fmt.Errorf("storage endpoint: %w", err)
	}
	network, address := "tcp", u.Host
	if u.Scheme == "unix" {
		network, address = "unix", u.Host+u.Path
	}
	dialer := net.Dialer{Timeout: storeDialLimit}
	connection, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return fmt.Errorf("the store %s does not answer: %w; check that it runs and that the address is right", store.URL, err)
	}
	return connection.Close()
}
