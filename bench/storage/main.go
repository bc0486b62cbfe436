// Command storage measures the store beside embedded etcd and kine: the same
// requests, from the same clients, to servers in processes of their own, in
// one run. Rounds are shuffled and each ratio is taken within a round, so that
// a machine that gets slower or faster changes all of them alike.
//
//	go run . -rounds 5 -write ../../docs/benchmarks.md
//	go run . -postgres postgres://…      with PostgreSQL
//	go run . -memory 1000000             memory and start at so many keys instead
//	go run . -compaction 1000000         writes while so many revisions are compacted
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// settings are the flags.
type settings struct {
	taskctl, postgres, only, write string
	rounds, clients, keys          int
	memory, compaction             int
	duration                       time.Duration
	seed                           uint64
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == serveEtcd {
		exit(runEtcd(os.Args[2]))
	}
	var s settings
	flag.StringVar(&s.taskctl, "taskctl", os.Getenv("TASKCTL_BIN"), "the program to measure; built from ../.. when empty")
	flag.StringVar(&s.postgres, "postgres", os.Getenv("TASKCTL_TEST_POSTGRES"), "DSN of a PostgreSQL server to measure on as well")
	flag.StringVar(&s.only, "only", "", "measure only these, by a part of their names, separated by commas")
	flag.StringVar(&s.write, "write", "", "write the table between the markers of this Markdown file")
	flag.IntVar(&s.rounds, "rounds", 3, "how often everything is measured")
	flag.IntVar(&s.clients, "clients", 32, "clients at once, each with a connection")
	flag.IntVar(&s.keys, "keys", 3000, "keys of 1 KiB")
	flag.DurationVar(&s.duration, "duration", 2*time.Second, "how long a workload that has no natural end runs")
	flag.IntVar(&s.memory, "memory", 0, "measure memory and start at so many keys instead")
	flag.IntVar(&s.compaction, "compaction", 0, "measure writes while so many revisions are compacted instead")
	flag.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()), "seed of the order and of the keys")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, s)
	stop()
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, s settings) error {
	scratch, err := os.MkdirTemp("", "taskctl-bench-storage-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	contenders, err := newContenders(ctx, s, scratch)
	if err != nil {
		return err
	}
	switch {
	case s.memory > 0:
		return measureMemory(ctx, s, contenders)
	case s.compaction > 0:
		return measureCompaction(ctx, s, contenders)
	}
	random := rand.New(rand.NewPCG(s.seed, 0))
	results := newResults(contenders)
	for round := range s.rounds {
		order := random.Perm(len(contenders))
		for _, i := range order {
			figures, err := measure(ctx, s, contenders[i])
			if err != nil {
				return fmt.Errorf("%s: %w", contenders[i].name, err)
			}
			results.add(contenders[i].name, round, figures)
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, s.rounds, figures.line(contenders[i].name))
		}
	}
	table := results.markdown(s)
	fmt.Println(table)
	if s.write == "" {
		return nil
	}
	return writeBetweenMarkers(s.write, table)
}

// selected says whether -only chose a contender; etcd is always measured,
// since the ratios are to it.
func (s settings) selected(name string) bool {
	if s.only == "" || name == etcdName {
		return true
	}
	for part := range strings.SplitSeq(s.only, ",") {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

var errNoEvent = errors.New("no event within 10 s")
