// Package routing decides which backend of a store holds a key: rules by group,
// resource, namespace, name or raw prefix, of which the first that matches
// wins, and a default.
//
// It knows how kube-apiserver makes keys, and nothing of databases. The store's
// engine asks a Router for every request; commands ask it to explain.
package routing
