package kind

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"strings"
)

// networkName is the engine's network of our nodes: one of our own, so that it
// can go with the last of them. kind's own is shared with the user's clusters.
const networkName = "taskctl"

// networkVariables name the network that kind's library uses; it reads them
// from the environment, and from nowhere else.
func networkVariables() []string {
	return []string{"KIND_EXPERIMENTAL_DOCKER_NETWORK", "KIND_EXPERIMENTAL_PODMAN_NETWORK"}
}

// network is the name of the network to use: the user may have said another.
func (e *Engine) network() string {
	variable := networkVariables()[0]
	if e.Name == "podman" {
		variable = networkVariables()[1]
	}
	if name := os.Getenv(variable); name != "" {
		return name
	}
	return networkName
}

// useNetwork makes kind's library use our network.
func (e *Engine) useNetwork() error {
	network := e.network()
	for _, variable := range networkVariables() {
		if err := os.Setenv(variable, network); err != nil {
			return err
		}
	}
	return nil
}

// gateway is this machine's address in the network of the node.
func (e *Engine) gateway(ctx context.Context) (netip.Addr, error) {
	text, err := e.run(ctx, "network", "inspect", e.network())
	if err != nil {
		return netip.Addr{}, fmt.Errorf("asking for the network %s: %w", e.network(), err)
	}
	type subnet struct{ Gateway string }
	var networks []struct {
		IPAM struct{ Config []subnet }
		// podman's form
		Subnets []subnet `json:"subnets"`
	}
	if err := json.Unmarshal([]byte(text), &networks); err != nil || len(networks) == 0 {
		return netip.Addr{}, fmt.Errorf("the network %s is described in a way that can't be understood: %w", e.network(), err)
	}
	for _, subnet := range append(networks[0].IPAM.Config, networks[0].Subnets...) {
		// Docker 28 writes it without, older ones with a prefix length.
		address, err := netip.ParseAddr(strings.Split(subnet.Gateway, "/")[0])
		if err == nil && address.Is4() {
			return address, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("the network %s has no IPv4 gateway", e.network())
}

// removeNetwork removes our network if no container is connected to it, stopped
// ones included: those of other appliances need it at their next start.
func (e *Engine) removeNetwork(ctx context.Context) error {
	if e.network() != networkName {
		return nil // the user's
	}
	users, err := e.run(ctx, "ps", "--all", "--quiet", "--filter", "network="+networkName)
	if err != nil {
		return fmt.Errorf("asking who uses the network %s: %w", networkName, err)
	}
	if users != "" {
		return nil
	}
	_, err = e.run(ctx, "network", "rm", networkName)
	if err != nil && !says(err, "not found", "no such network", "has active endpoints", "unable to find network") {
		return fmt.Errorf("removing the network %s: %w", networkName, err)
	}
	return nil
}
