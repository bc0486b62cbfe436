package aggregator_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testManyWatches opens a thousand watches and checks that each sees a change.
func testManyWatches(t *testing.T, c control) {
	const count = 1000
	s := c.run(t, c.options(t))
	namespace := c.namespace(t)
	transport := c.asAdmin(t)
	saw := make(chan error, count)
	for range count {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.address+in(namespace)+"?watch=1", nil)
		must(t, err)
		response, err := transport.RoundTrip(request)
		must(t, err)
		defer response.Body.Close()
		go func() {
			line, err := bufio.NewReader(response.Body).ReadString('\n')
			if err == nil && !strings.Contains(line, `"type":"ADDED"`) {
				err = fmt.Errorf("got %s", line)
			}
			saw <- err
		}()
	}
	c.createTask(t, namespace, "x", 1)
	timeout := time.After(patience)
	for i := range count {
		select {
		case err := <-saw:
			must(t, err)
		case <-timeout:
			t.Fatalf("%d of %d watches saw the change within %s", i, count, patience)
		}
	}
	if took := s.stop(); took > 3500*time.Millisecond {
		t.Errorf("with %d open watches it took %s to stop", count, took)
	}
}

// testSlowReader lists more than the network buffers and reads nothing of it:
// neither others nor the stop may wait for that.
func testSlowReader(t *testing.T, c control) {
	s := c.run(t, c.options(t))
	namespace := c.namespace(t)
	// What is large is gone before the next test lists it.
	defer func() {
		must(t, c.tasks.Delete().Namespace(namespace).Resource("tasks").Do(t.Context()).Error())
	}()
	details := strings.Repeat("x", 60_000)
	var group errgroup.Group
	group.SetLimit(20)
	for i := range 100 {
		group.Go(func() error {
			task := c.newTask(namespace, fmt.Sprint("t", i), 1)
			task.Spec.Details = details
			return c.tasks.Post().Namespace(namespace).Resource("tasks").Body(task).Do(t.Context()).Error()
		})
	}
	must(t, group.Wait())
	config := c.transport(t, c.pki("front-proxy-client.crt"), c.pki("front-proxy-client.key")).TLSClientConfig.Clone()
	config.NextProtos = []string{"http/1.1"}
	connection, err := tls.Dial("tcp", s.address, config)
	must(t, err)
	defer connection.Close()
	_, err = fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: %s\r\nX-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n\r\n", in(namespace), s.address)
	must(t, err)
	// The answer has begun, and does not fit in any buffer.
	status, err := bufio.NewReaderSize(connection, 64).ReadString('\n')
	must(t, err)
	if !strings.Contains(status, "200") {
		t.Fatalf("got %s", status)
	}
	w := s.watch(t, namespace, metav1.ListOptions{FieldSelector: "metadata.name=other", ResourceVersion: "0"})
	c.createTask(t, namespace, "other", 1)
	next(t, w, ofType("ADDED", "other"))
	if took := s.stop(); took > 3500*time.Millisecond {
		t.Errorf("with a reader that does not read it took %s to stop", took)
	}
}
