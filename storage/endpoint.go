package storage

import "github.com/taskctl-dev/taskctl/storage/endpoint"

// Endpoint is where an etcd v3 client finds the store.
type Endpoint = endpoint.Endpoint
