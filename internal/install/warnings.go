package install

import (
	"context"
	"strings"
	"sync"
)

// warnings collects the API server's warnings instead of logging them.
type warnings struct {
	mu   sync.Mutex
	text []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text)
}

// contain says whether some warning contains part.
func (w *warnings) contain(part string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.text {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
