package supervisor

import (
	"net/netip"
	"sync"
)

// loopback is where everything answers that only this machine's programs ask.
const loopback = "127.0.0.1"

// portBook remembers the address at which the API server finds a component now.
type portBook struct {
	mu    sync.Mutex
	ports map[string]netip.AddrPort
}

func (b *portBook) set(component string, address netip.AddrPort) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ports == nil {
		b.ports = map[string]netip.AddrPort{}
	}
	b.ports[component] = address
}

// get is not valid for a component that has not opened a port.
func (b *portBook) get(component string) netip.AddrPort {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ports[component]
}
