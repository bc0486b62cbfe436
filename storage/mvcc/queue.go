package mvcc

import (
	"context"
	"sync"
)

// job is one request that the writer of a shard evaluates as part of a batch.
type job struct {
	ctx context.Context
	// evaluate adds what the job changes to the batch. It is called again,
	// on a new batch, when the batch did not come to be stored. Its error is
	// the job's answer and leaves the batch as it was.
	evaluate func(*batch) error
	// stored runs once the batch is durable, before the job is answered and
	// before the next batch is evaluated. It may be nil.
	stored func()
	// failed runs before the job is answered with an error, on the
	// goroutine that answers. It may be nil.
	failed func()
	bytes  int // estimate of what the job stores

	err  error
	done chan error
}

// finish answers the job.
func (j *job) finish(err error) {
	if err != nil && j.failed != nil {
		j.failed()
	}
	j.done <- err
}

// queue holds the jobs that wait for the writer.
type queue struct {
	mu      sync.Mutex
	jobs    []*job
	refused error // why nothing is taken; nil normally
	wake    chan struct{}
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// add queues a job, or says why none is taken.
func (q *queue) add(j *job) error {
	q.mu.Lock()
	if q.refused != nil {
		defer q.mu.Unlock()
		return q.refused
	}
	q.jobs = append(q.jobs, j)
	first := len(q.jobs) == 1
	q.mu.Unlock()
	if first {
		q.nudge()
	}
	return nil
}

func (q *queue) nudge() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take removes the first jobs, at most count of them and, beside the first, at
// most bytes of what they store.
func (q *queue) take(count, bytes int) []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, sum := 0, 0
	for n < len(q.jobs) && n < count {
		sum += q.jobs[n].bytes
		if n > 0 && sum > bytes {
			break
		}
		n++
	}
	taken := q.jobs[:n:n]
	q.jobs = q.jobs[n:]
	if len(q.jobs) == 0 {
		q.jobs = nil
	}
	return taken
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.jobs)
}

// refuse answers what waits, and what comes until accept, with the reason.
func (q *queue) refuse(reason error) {
	q.mu.Lock()
	q.refused = reason
	rest := q.jobs
	q.jobs = nil
	q.mu.Unlock()
	for _, j := range rest {
		j.finish(reason)
	}
}

// accept ends refuse.
func (q *queue) accept() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refused = nil
}
