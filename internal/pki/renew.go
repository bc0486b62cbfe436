package pki

import (
	"context"
	"time"
)

// Clock jumps (a laptop that slept, a clock that was set) are noticed by
// looking at it at least this often.
const longestWait = time.Minute

// OnRenew registers a function that is called, from [PKI.Run]'s goroutine,
// with the name of each certificate after its file was replaced: a [Client] or
// a [Serving] as a string, or "ca" and "front-proxy-ca".
func (p *PKI) OnRenew(f func(name string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onRenew = append(p.onRenew, f)
}

// Run renews certificates when they are due, until ctx ends. It is ready at
// once, because [Open] left everything valid. A renewal that fails, on a full
// disk for example, is logged and tried again: a third of the certificate's
// life is left for that.
func (p *PKI) Run(ctx context.Context, ready func()) error {
	defer p.closeIdleConnections()
	ready()
	timer := time.NewTimer(p.wait())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			p.renew()
			timer.Reset(p.wait())
		}
	}
}

func (p *PKI) renew() {
	changed, err := p.refresh(p.options.now())
	if err != nil {
		p.options.Log.Error("Certificates could not be renewed; trying again", "error", err)
	}
	if len(changed) == 0 {
		return
	}
	p.rotateTransports()
	p.mu.Lock()
	callbacks := p.onRenew
	p.mu.Unlock()
	for _, name := range changed {
		p.options.Log.Info("Renewed a certificate", "name", name)
		for _, f := range callbacks {
			f(name)
		}
	}
}

// wait is the time to the next renewal, within limits: at most a minute, and
// at most a fifteenth of a short lifetime, which leaves time to try again.
func (p *PKI) wait() time.Duration {
	return min(longestWait, p.options.Lifetime/15, p.options.AuthorityLifetime/15)
}
