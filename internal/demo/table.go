package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
)

const (
	// tableRows is how many Tasks are printed.
	tableRows = 20
	// joinLimit is how long the join of Tasks and Events, which follows both by
	// watching, is waited for. It takes milliseconds.
	joinLimit = 10 * time.Second
	joinPoll  = 100 * time.Millisecond

	combinedTasks = "/apis/search.task.example.example.com/v1/namespaces/%s/combinedtasks"
	acceptTable   = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

// printTable prints the first Tasks of the demo as kubectl get would.
func (d *demo) printTable(ctx context.Context, seeded []seededTask) error {
	table, err := d.waitTable(ctx, seeded)
	if err != nil {
		return fmt.Errorf("listing combinedtasks: %w", err)
	}
	if err := printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(table, d.options.Out); err != nil {
		return fmt.Errorf("printing the Tasks: %w", err)
	}
	if more := len(seeded) - len(table.Rows); more > 0 {
		if _, err := fmt.Fprintf(d.options.Out, "… and %d more\n", more); err != nil {
			return fmt.Errorf("printing the Tasks: %w", err)
		}
	}
	return nil
}

// waitTable asks for the table until it has the rows that it must have.
func (d *demo) waitTable(ctx context.Context, seeded []seededTask) (*metav1.Table, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, joinLimit, errors.New("the Tasks did not appear with their Events within "+joinLimit.String()))
	defer cancel()
	ticker := time.NewTicker(joinPoll)
	defer ticker.Stop()
	for {
		table, err := d.table(ctx)
		if err == nil {
			err = checkTable(table, seeded)
		}
		if err == nil {
			return table, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w; the last answer was: %w", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

func (d *demo) table(ctx context.Context) (*metav1.Table, error) {
	table := &metav1.Table{}
	err := d.rest.Get().
		AbsPath(fmt.Sprintf(combinedTasks, d.options.Namespace)).
		Param("labelSelector", partOfLabel+"="+partOfValue).
		Param("limit", fmt.Sprint(tableRows)).
		SetHeader("Accept", acceptTable).
		Do(ctx).Into(table)
	return table, err
}

// checkTable wants as many rows as fit, and Events in the row of each Task that
// is new or changed.
func checkTable(table *metav1.Table, seeded []seededTask) error {
	if want := min(len(seeded), tableRows); len(table.Rows) < want {
		return fmt.Errorf("it has %d of %d Tasks", len(table.Rows), want)
	}
	column := func(name string) int {
		return slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == name })
	}
	nameAt, eventsAt := column("Name"), column("Events")
	if nameAt < 0 || eventsAt < 0 {
		return errors.New("the table lacks the columns Name and Events")
	}
	fresh := map[any]bool{}
	for _, task := range seeded {
		fresh[task.name] = task.changed
	}
	for _, row := range table.Rows {
		if fresh[row.Cells[nameAt]] && fmt.Sprint(row.Cells[eventsAt]) == "0" {
			return fmt.Errorf("the Task %v has no Events yet", row.Cells[nameAt])
		}
	}
	return nil
}

// newRESTClient is a client for tables and nothing else.
func newRESTClient(config *rest.Config, httpClient *http.Client) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config = rest.CopyConfig(config)
	config.ContentConfig = rest.ContentConfig{
		GroupVersion:         &schema.GroupVersion{Version: "v1"},
		NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
	}
	return rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
}
