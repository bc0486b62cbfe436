package aggregator

import "k8s.io/client-go/rest"

// TaskClient gives tests the client of Tasks.
func TaskClient(config *rest.Config) (rest.Interface, error) {
	c, err := newClients(config)
	if err != nil {
		return nil, err
	}
	return c.tasks, nil
}
