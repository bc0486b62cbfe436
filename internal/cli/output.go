package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// printer writes messages for people and data for programs. It is safe for
// concurrent use.
type printer struct {
	stdout, stderr io.Writer
	quiet          bool

	mu      sync.Mutex
	spinner *spinner // nil without a terminal
}

func (p *program) printer(values common) *printer {
	out := &printer{stdout: p.env.Stdout, stderr: p.env.Stderr, quiet: values.quiet}
	if p.env.Terminal && !values.quiet && !values.json {
		out.spinner = newSpinner(p.env.Stderr, p.env.Getenv("NO_COLOR") == "")
	}
	return out
}

// message tells people something, on standard error.
func (o *printer) message(format string, args ...any) {
	if o.quiet {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spinner.hide()
	fmt.Fprintf(o.stderr, format+"\n", args...)
}

// progress tells people what is going on: as the spinner's text on a terminal,
// where it is replaced by the next one; elsewhere nowhere.
func (o *printer) progress(format string, args ...any) {
	if o.quiet {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spinner.show(fmt.Sprintf(format, args...))
}

// line tells people of a finished step where there is no spinner.
func (o *printer) line(format string, args ...any) {
	if o.spinner == nil {
		o.message(format, args...)
	}
}

// close takes the spinner away.
func (o *printer) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spinner.hide()
}

// data writes text to standard output.
func (o *printer) data(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spinner.hide()
	fmt.Fprintf(o.stdout, format, args...)
}

// object writes one JSON object on a line of its own to standard output.
func (o *printer) object(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	o.data("%s\n", text)
	return nil
}

// seconds is a duration as people like to read it.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// age is how long ago something was, in the two largest units.
func age(since time.Time) string {
	d := time.Since(since).Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}
