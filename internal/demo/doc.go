// Package demo fills a cluster with Tasks, waits until the controller has seen
// them all, and shows them with their Events. It is a client like any other:
// the appliance does not depend on it, and it uses nothing but the API.
package demo
