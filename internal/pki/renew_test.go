package pki

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Inside synctest.Test the clock is a fake one: sleeping moves it on and takes
// no time.
func TestRunRenewsAtTwoThirdsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, t.TempDir(), Options{Lifetime: time.Hour})
		var renewals counts
		p.OnRenew(renewals.add)
		stop := run(t, p)
		first, _ := p.GetCertificate(WebhooksServing)(nil)

		time.Sleep(39 * time.Minute)
		synctest.Wait()
		if renewed := renewals.all(); len(renewed) != 0 {
			t.Errorf("after 39 of 60 minutes were renewed: %v", renewed)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if renewed := renewals.all(); len(renewed) != 8 || renewed["operator"] != 1 || renewed["webhooks-serving"] != 1 {
			t.Errorf("after 41 of 60 minutes were renewed: %v", renewed)
		}
		second, _ := p.GetCertificate(WebhooksServing)(nil)
		if first.Leaf.SerialNumber.Cmp(second.Leaf.SerialNumber) == 0 {
			t.Error("GetCertificate gives the old certificate")
		}
		if read, err := readCertificate(p.ServingFiles(WebhooksServing).Cert); err != nil || !read.Equal(second.Leaf) {
			t.Errorf("the file does not hold the new certificate, error %v", err)
		}
		verify(t, p, time.Now())
		stop()
	})
}

func TestRunTriesAgainWhenARenewalFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var log logLines
		p := open(t, dir, Options{Lifetime: time.Minute, Log: slog.New(slog.NewTextHandler(&log, nil))})
		moved := dir + "-moved"
		if err := os.Rename(dir, moved); err != nil {
			t.Fatal(err)
		}
		stop := run(t, p)
		time.Sleep(50 * time.Second)
		synctest.Wait()
		if log.count.Load() == 0 || !strings.Contains(log.last.Load().(string), "could not be renewed") {
			t.Errorf("the log's last line is %v", log.last.Load())
		}
		if err := os.Rename(moved, dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		verify(t, p, time.Now().Add(30*time.Second))
		stop()
	})
}

// run runs the renewer until stop is called.
func run(t *testing.T, p *PKI) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- p.Run(ctx, func() { close(ready) }) }()
	<-ready
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// counts counts names.
type counts struct {
	mu    sync.Mutex
	names map[string]int
}

func (c *counts) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.names == nil {
		c.names = map[string]int{}
	}
	c.names[name]++
}

func (c *counts) all() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.names)
}

// logLines counts lines and keeps the last.
type logLines struct {
	count atomic.Int64
	last  atomic.Value
}

func (l *logLines) Write(line []byte) (int, error) {
	l.count.Add(1)
	l.last.Store(string(line))
	return len(line), nil
}
