package demo

import (
	"context"
	"fmt"
	"io"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const (
	// DefaultTasks and DefaultNamespace apply where Options say nothing.
	DefaultTasks     = 10
	DefaultNamespace = "default"

	defaultPatience = 30 * time.Second

	fieldManager = "taskctl-demo"

	// partOfLabel marks the demo's Tasks.
	partOfLabel = "app.kubernetes.io/part-of"
	partOfValue = "taskctl-demo"
)

// Stage is what Run is doing.
type Stage string

// The stages, in their order.
const (
	StageCreate  Stage = "create"  // Tasks are created
	StageObserve Stage = "observe" // the controller is waited for
)

// Options say what to seed.
type Options struct {
	// Tasks is how many Tasks there will be: task-sample-1 and so on.
	Tasks int
	// Namespace is where; it is created if it does not exist.
	Namespace string
	// Patience is how long the controller may observe no Task at all before
	// Run gives up; the default is 30 s.
	Patience time.Duration
	// Out gets the table of the first Tasks with their Events; nil for none.
	Out io.Writer
	// Progress, if set, is told how many Tasks of the total have passed a
	// stage. It is called from several goroutines, never from two at a time.
	Progress func(stage Stage, done, total int)
}

// Result is what Run did.
type Result struct {
	Namespace string `json:"namespace"`
	// Tasks is how many Tasks of the demo there are now.
	Tasks int `json:"tasks"`
	// Created and Changed say how many of them are new or have another spec
	// than before. The rest was there already.
	Created int `json:"created"`
	Changed int `json:"changed"`
	// Seconds from the first write until the controller had observed all.
	Seconds float64 `json:"seconds"`
}

// Run creates the Tasks, by server-side apply, so that running it again is
// harmless: the specs that it gives change once a day. It waits until the controller has observed every Task, checks that the Events
// of all new and changed ones are there, and prints the first ones from
// combinedtasks.
func Run(ctx context.Context, config *rest.Config, options Options) (Result, error) {
	if options.Tasks == 0 {
		options.Tasks = DefaultTasks
	}
	if options.Namespace == "" {
		options.Namespace = DefaultNamespace
	}
	if options.Patience == 0 {
		options.Patience = defaultPatience
	}
	d, err := newDemo(config, options)
	if err != nil {
		return Result{}, err
	}
	defer d.close()

	start := time.Now()
	seeded, err := d.seed(ctx, start)
	if err != nil {
		return Result{}, err
	}
	if err := d.waitObserved(ctx, seeded); err != nil {
		return Result{}, err
	}
	result := summarize(options.Namespace, seeded, time.Since(start))
	if err := d.checkEvents(ctx, seeded); err != nil {
		return result, err
	}
	if options.Out == nil {
		return result, nil
	}
	return result, d.printTable(ctx, seeded)
}

func summarize(namespace string, seeded []seededTask, elapsed time.Duration) Result {
	result := Result{Namespace: namespace, Tasks: len(seeded), Seconds: elapsed.Seconds()}
	for _, task := range seeded {
		switch {
		case task.created:
			result.Created++
		case task.changed:
			result.Changed++
		}
	}
	return result
}

// demo has the clients of one Run.
type demo struct {
	options  Options
	config   *rest.Config
	dynamic  dynamic.Interface
	metadata metadata.Interface
	rest     rest.Interface
	close    func()
}

func newDemo(config *rest.Config, options Options) (*demo, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // the API server's fairness protects it
	config.UserAgent = fieldManager
	config.WarningHandlerWithContext = rest.NoWarnings{}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("setting up a client of the API server: %w", err)
	}
	d := &demo{options: options, config: config}
	d.close = func() { utilnet.CloseIdleConnectionsFor(httpClient.Transport) }
	if d.dynamic, err = dynamic.NewForConfigAndClient(config, httpClient); err != nil {
		return nil, fmt.Errorf("setting up a client of the API server: %w", err)
	}
	if d.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient); err != nil {
		return nil, fmt.Errorf("setting up a client of the API server: %w", err)
	}
	if d.rest, err = newRESTClient(config, httpClient); err != nil {
		return nil, fmt.Errorf("setting up a client of the API server: %w", err)
	}
	return d, nil
}

// progress reports only if somebody wants to know.
func (d *demo) progress(stage Stage, done int) {
	if d.options.Progress != nil {
		d.options.Progress(stage, done, d.options.Tasks)
	}
}
