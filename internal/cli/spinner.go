package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// spinner is a line at the bottom of a terminal that moves while something is
// going on. A nil spinner shows nothing.
type spinner struct {
	w      io.Writer
	colour bool

	stop chan struct{} // nil while hidden
	done sync.WaitGroup

	mu   sync.Mutex
	text string
}

func newSpinner(w io.Writer, colour bool) *spinner { return &spinner{w: w, colour: colour} }

const clearLine = "\r\033[K"

// show makes the text the moving line.
func (s *spinner) show(text string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.text = text
	s.mu.Unlock()
	if s.stop != nil {
		return
	}
	stop := make(chan struct{})
	s.stop = stop
	s.done.Go(func() { s.turn(stop) })
}

func (s *spinner) turn(stop <-chan struct{}) {
	frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		s.mu.Lock()
		text := s.text
		s.mu.Unlock()
		frame := string(frames[i%len(frames)])
		if s.colour {
			frame = "\033[36m" + frame + "\033[0m"
		}
		fmt.Fprintf(s.w, "%s%s %s", clearLine, frame, text)
		select {
		case <-stop:
			fmt.Fprint(s.w, clearLine)
			return
		case <-tick.C:
		}
	}
}

// hide takes the line away and waits until it is gone.
func (s *spinner) hide() {
	if s == nil || s.stop == nil {
		return
	}
	close(s.stop)
	s.done.Wait()
	s.stop = nil
}
