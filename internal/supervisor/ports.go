package supervisor

import "sync"

// portBook remembers the port at which a component answers now.
type portBook struct {
	mu    sync.Mutex
	ports map[string]int
}

func (b *portBook) set(component string, port int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ports == nil {
		b.ports = map[string]int{}
	}
	b.ports[component] = port
}

// get is 0 for a component that has not opened a port.
func (b *portBook) get(component string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ports[component]
}
