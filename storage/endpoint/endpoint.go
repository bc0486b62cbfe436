// Package endpoint says where a store is found. It imports nothing: what a store
// is made of can say it, too, and whoever only talks to a store does not link
// every database that it could be in (the cluster package for one, which others
// build into their tests).
package endpoint

// Endpoint is where an etcd v3 client finds the store.
type Endpoint struct {
	// URL is unix:///path/to.sock, http://host:port or https://host:port.
	URL string
	// CAFile, CertFile and KeyFile are PEM files for an https URL: the
	// authority that signed the server's certificate, and the client's own
	// certificate and key. They are empty for unix and http.
	CAFile, CertFile, KeyFile string
}
