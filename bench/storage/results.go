package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// results are the figures of all rounds.
type results struct {
	names  []string
	rounds map[string][]figures
}

func newResults(contenders []contender) *results {
	r := &results{rounds: map[string][]figures{}}
	for _, c := range contenders {
		r.names = append(r.names, c.name)
	}
	return r
}

func (r *results) add(name string, round int, f figures) {
	r.rounds[name] = append(r.rounds[name], f)
	if len(r.rounds[name]) != round+1 {
		panic("a round is missing") // a mistake in run
	}
}

// markdown is a table of medians, with the median of the ratios to etcd of the
// same round behind each.
func (r *results) markdown(s settings) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Measured on %s. %d clients, %d keys of %d bytes, %d rounds, %d cores; requests per second (list: objects per second), medians, "+
		"and in brackets the median ratio to etcd in the same round. Higher is better, except for put to event.\n\n",
		time.Now().Format("2 January 2006"), s.clients, s.keys, valueSize, s.rounds, runtime.NumCPU())
	out.WriteString("| |")
	for _, name := range r.names {
		fmt.Fprintf(&out, " %s |", name)
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(r.names)) + "\n")
	for _, workload := range workloadNames {
		fmt.Fprintf(&out, "| %s |", workload)
		for _, name := range r.names {
			var values, ratios []float64
			for round, f := range r.rounds[name] {
				values = append(values, f[workload])
				ratios = append(ratios, f[workload]/r.rounds[etcdName][round][workload])
			}
			if slices.ContainsFunc(values, math.IsNaN) {
				out.WriteString(" no event within 10 s |")
				continue
			}
			fmt.Fprintf(&out, " %.0f", quantile(values, 0.5))
			if name != etcdName {
				fmt.Fprintf(&out, " (%.2f)", quantile(ratios, 0.5))
			}
			out.WriteString(" |")
		}
		out.WriteString("\n")
	}
	r.writeCosts(&out)
	return out.String()
}

// writeCosts adds a table of processor times.
func (r *results) writeCosts(out *strings.Builder) {
	out.WriteString("\nProcessor time of the server's process for one of them, in µs:\n\n| |")
	for _, name := range r.names {
		fmt.Fprintf(out, " %s |", name)
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(r.names)) + "\n")
	for _, workload := range workloadNames[:len(workloadNames)-2] {
		fmt.Fprintf(out, "| %s |", workload)
		for _, name := range r.names {
			var values []float64
			for _, f := range r.rounds[name] {
				values = append(values, f[workload+costSuffix])
			}
			fmt.Fprintf(out, " %.1f |", quantile(values, 0.5))
		}
		out.WriteString("\n")
	}
}

// quantile is the value below which a share of the values lies.
func quantile(values []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(math.Round(share*float64(len(sorted)-1))))]
}

const (
	beginMarker = "<!-- bench/storage: begin -->"
	endMarker   = "<!-- bench/storage: end -->"
)

// writeBetweenMarkers replaces what stands between our markers in a Markdown
// file, or appends them; other benchmarks have sections of their own.
func writeBetweenMarkers(path, text string) error {
	content, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	section := beginMarker + "\n" + text + endMarker
	before, rest, found := strings.Cut(string(content), beginMarker)
	if !found {
		return os.WriteFile(path, []byte(strings.TrimRight(before, "\n")+"\n\n## Storage\n\n"+section+"\n"), 0o644)
	}
	_, after, found := strings.Cut(rest, endMarker)
	if !found {
		return fmt.Errorf("%s has %q without %q", path, beginMarker, endMarker)
	}
	return os.WriteFile(path, []byte(before+section+after), 0o644)
}
