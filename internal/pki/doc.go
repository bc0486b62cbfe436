// Package pki makes and keeps the appliance's keys and certificates.
//
// One folder holds a cluster authority, a front-proxy authority of its own,
// the key that signs service-account tokens, and one certificate and key for
// each server and each client identity. They are made on the first start,
// kept, and renewed at two thirds of their life, while running too: files are
// replaced by an atomic rename, and whoever got a certificate from this
// package follows without a restart.
//
// The supervisor and the test environment use it. It never gives a component
// more than the identity it asked for, and it never talks to a cluster.
package pki
