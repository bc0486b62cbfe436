package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/taskctl-dev/taskctl/internal/logging"
)

// Client asks the appliance behind a control socket.
type Client struct{ http *http.Client }

// NewClient makes a client of the socket; the caller closes it.
func NewClient(socket string) *Client {
	return &Client{&http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", socket)
		},
	}}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status is the appliance's state.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var status Status
	body, err := c.do(ctx, http.MethodGet, "/status", nil)
	if err != nil {
		return status, err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(&status); err != nil {
		return status, fmt.Errorf("reading the answer of the control socket: %w", err)
	}
	return status, nil
}

// Stop asks for an ordered stop. It returns the process that stops when the
// request was accepted, not when the appliance has stopped.
func (c *Client) Stop(ctx context.Context) (pid int, err error) {
	var accepted stopAnswer
	body, err := c.do(ctx, http.MethodPost, "/stop", nil)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(&accepted); err != nil {
		return 0, fmt.Errorf("reading the answer of the control socket: %w", err)
	}
	return accepted.PID, nil
}

// Logs copies log lines to w until they end, or, following, until the
// appliance or ctx does.
func (c *Client) Logs(ctx context.Context, options logging.ReadOptions, w io.Writer) error {
	query := url.Values{"component": options.Components}
	if !options.Since.IsZero() {
		query.Set("since", options.Since.Format(time.RFC3339Nano))
	}
	if options.Follow {
		query.Set("follow", "1")
	}
	body, err := c.do(ctx, http.MethodGet, "/logs", query)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(w, body)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (c *Client) do(ctx context.Context, method, path string, query url.Values) (io.ReadCloser, error) {
	target := url.URL{Scheme: "http", Host: "taskctl", Path: path, RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the appliance: %w", err)
	}
	if response.StatusCode < 300 {
		return response.Body, nil
	}
	defer response.Body.Close()
	var body errorBody
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil || body.Error == "" {
		return nil, fmt.Errorf("the appliance answered %s", response.Status)
	}
	return nil, errors.New(body.Error)
}
