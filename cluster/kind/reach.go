package kind

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// Reach is how programs in the node reach this process.
type Reach struct {
	// Listen is the address of this machine to open ports on, and on no other.
	Listen string
	// Dial is the address by which the node means it.
	Dial netip.Addr
}

// Reach finds out how the node reaches this process: by this machine's address
// in the node's network. Where that address is not this machine's: by the one
// that an engine in a virtual machine forwards from, or, of an engine without
// root's rights, by this machine's address in its own network.
func (c *Cluster) Reach(ctx context.Context) (Reach, error) {
	gateway, err := c.Node.Engine.gateway(ctx)
	if err != nil {
		return Reach{}, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(gateway.String(), "0"))
	if err == nil {
		return Reach{Listen: gateway.String(), Dial: gateway}, listener.Close()
	}
	if !errors.Is(err, syscall.EADDRNOTAVAIL) {
		return Reach{}, fmt.Errorf("opening a port on the address %s of %s's network: %w", gateway, c.Node.Engine.Name, err)
	}
	for _, name := range []string{"host.docker.internal", "host.containers.internal"} {
		text, err := c.Node.exec(ctx, askLimit, "sh", "-c", "getent ahostsv4 "+name+" | head -n 1 | cut -d ' ' -f 1")
		if err != nil {
			continue
		}
		if address, err := netip.ParseAddr(text); err == nil && !address.IsLoopback() {
			return Reach{Listen: "127.0.0.1", Dial: address}, nil
		}
	}
	if own, ok := ownAddress(ctx); ok && c.Node.Engine.Rootless {
		return Reach{Listen: own.String(), Dial: own}, nil
	}
	return Reach{}, fmt.Errorf("the node has no way to this process: the address %s of %s's network is not this machine's, and the node knows no host.docker.internal; use an engine of this machine, or --cluster embedded", gateway, c.Node.Engine.Name)
}

// ownAddress is this machine's address on its way to other networks. Nothing is
// sent: a datagram socket only looks up the route.
func ownAddress(ctx context.Context) (netip.Addr, bool) {
	connection, err := (&net.Dialer{}).DialContext(ctx, "udp4", "192.0.2.1:9") // a documentation address, RFC 5737
	if err != nil {
		return netip.Addr{}, false
	}
	defer connection.Close() //nolint:errcheck // nothing was sent
	address, err := netip.ParseAddrPort(connection.LocalAddr().String())
	return address.Addr(), err == nil && !address.Addr().IsLoopback()
}

// reachLimit is how long a connection from the node may take to open. On one
// machine it takes a millisecond; a firewall that drops lets it wait for ever.
const reachLimit = 3 * time.Second

// UnreachableError says that the node can't open a connection to this process.
type UnreachableError struct {
	Address string
	Engine  string
	Reason  string
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the node can't reach %s of this machine (%s): a firewall of this machine seems to block connections from %s's network; let them in (sudo ufw allow in from any to %s, or sudo firewall-cmd --zone=trusted --add-source=the network's subnet), or use --cluster embedded",
		e.Address, e.Reason, e.Engine, e.host())
}

func (e *UnreachableError) host() string {
	host, _, err := net.SplitHostPort(e.Address)
	if err != nil {
		return e.Address
	}
	return host
}

// TryFromNode opens a connection from the node to a port of this process. An
// *UnreachableError says that it can't be.
func (c *Cluster) TryFromNode(ctx context.Context, address netip.Addr, port int) error {
	target := net.JoinHostPort(address.String(), strconv.Itoa(port))
	script := fmt.Sprintf("exec 3<>/dev/tcp/%s/%d", address, port)
	limit := strconv.FormatFloat(reachLimit.Seconds(), 'f', -1, 64)
	_, err := c.Node.exec(ctx, reachLimit+askLimit, "timeout", limit, "bash", "-c", script)
	if err == nil || ctx.Err() != nil {
		return err
	}
	reason := "no answer within " + reachLimit.String()
	if says(err, "refused", "unreachable", "no route") {
		reason = err.Error()
	}
	return &UnreachableError{Address: target, Engine: c.Node.Engine.Name, Reason: reason}
}
