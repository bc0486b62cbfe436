// Command startup measures how long an appliance takes to start and to stop,
// beside a bare API server on its embedded etcd in the same run. It prints
// medians in seconds; it never judges.
//
//	startup [-rounds 5] [-idle 30s] [-taskctl bin/taskctl]
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// bare leaves out everything but the store and the API server.
const bare = "controller-manager,manifests,operator,webhooks,aggregator,registration"

type measurement struct {
	name  string
	unit  string
	value float64
}

func main() {
	rounds := flag.Int("rounds", 5, "how often everything is measured")
	idle := flag.Duration("idle", 30*time.Second, "how long an idle appliance is watched; 0 leaves it out")
	binary := flag.String("taskctl", filepath.Join("bin", "taskctl"), "the binary")
	write := flag.String("write", "", "write the table between the markers of this Markdown file too")
	flag.Parse()
	if err := run(context.Background(), *binary, *rounds, *idle, *write); err != nil {
		fmt.Fprintln(os.Stderr, "startup:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary string, rounds int, idle time.Duration, write string) error {
	subjects := []subject{{name: "bare API server", without: bare}, {name: "appliance"}}
	collected := map[string][]measurement{}
	for round := range rounds {
		rand.Shuffle(len(subjects), func(i, j int) { subjects[i], subjects[j] = subjects[j], subjects[i] })
		for _, s := range subjects {
			watched := time.Duration(0)
			if round == 0 {
				watched = idle
			}
			results, err := s.measure(ctx, binary, watched)
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", s.name, round+1, err)
			}
			for _, m := range results {
				key := s.name + ": " + m.name
				collected[key] = append(collected[key], m)
			}
		}
	}
	table := render(collected)
	fmt.Print(table)
	if write == "" {
		return nil
	}
	return writeBetweenMarkers(write, fmt.Sprintf("%s, %d rounds.\n\n%s", time.Now().Format(time.DateOnly), rounds, table))
}

// render makes one line a figure: median, and the range over the rounds.
func render(collected map[string][]measurement) string {
	keys := make([]string, 0, len(collected))
	for key := range collected {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var table strings.Builder
	table.WriteString("| what | median | least | most |\n|---|---|---|---|\n")
	for _, key := range keys {
		values := collected[key]
		slices.SortFunc(values, func(a, b measurement) int { return cmp.Compare(a.value, b.value) })
		fmt.Fprintf(&table, "| %s | %.2f %s | %.2f | %.2f |\n", key,
			values[len(values)/2].value, values[0].unit, values[0].value, values[len(values)-1].value)
	}
	return table.String()
}

const (
	beginMarker = "<!-- bench/startup: begin -->"
	endMarker   = "<!-- bench/startup: end -->"
)

// writeBetweenMarkers replaces what stands between our markers in a file.
func writeBetweenMarkers(file, text string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(data), beginMarker)
	_, after, ended := strings.Cut(rest, endMarker)
	if !begun || !ended {
		return fmt.Errorf("%s has no markers %s and %s", file, beginMarker, endMarker)
	}
	return os.WriteFile(file, []byte(before+beginMarker+"\n"+text+endMarker+after), 0o644)
}
