package supervisor

import (
	"net"
	"slices"
	"sync"
	"time"

	"github.com/taskctl-dev/taskctl/cluster/embedded"
	"github.com/taskctl-dev/taskctl/internal/lifecycle"
)

// components is the table of docs/architecture.md. The stop limits of what
// stands in one line of needs add up to the longest stop that there can be;
// each is a few times what a stop really takes.
func (a *Appliance) components(listener net.Listener) []lifecycle.Component {
	backend := newStore(a.folder, a.logs)
	apiserver := &embedded.APIServer{Listener: listener, Storage: backend.Endpoint(), PKI: a.pki, Args: a.options.APIServerArgs}
	manager := &embedded.ControllerManager{Host: a.server, PKI: a.pki, Log: a.logs.Writer(ControllerManager)}

	all := []lifecycle.Component{
		{Name: Certificates, Run: a.pki.Run, Restart: true, StartTimeout: 10 * time.Second, StopTimeout: 2 * time.Second},
		{Name: Storage, Run: backend.Run, StartTimeout: time.Minute, StopTimeout: 5 * time.Second},
		{Name: APIServer, Needs: []string{Storage}, Run: apiserver.Run, StartTimeout: time.Minute, StopTimeout: 10 * time.Second},
		{Name: ControllerManager, Needs: []string{APIServer}, Run: manager.Run, StartTimeout: 30 * time.Second, StopTimeout: 5 * time.Second},
	}
	all = slices.DeleteFunc(all, func(c lifecycle.Component) bool { return a.isLeftOut(c.Name) })
	for i := range all {
		component := &all[i]
		component.Needs = slices.DeleteFunc(component.Needs, a.isLeftOut)
		component.LogFile = a.logs.Path(component.Name)
		component.Log = a.logs.Writer(component.Name)
	}
	return all
}

func (a *Appliance) isLeftOut(name string) bool { return slices.Contains(a.options.Without, name) }

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

func (b *portBook) get(component string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ports[component]
}
