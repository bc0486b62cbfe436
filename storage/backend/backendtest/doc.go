// Package backendtest checks that an implementation of package backend keeps
// the promises that the storage engine is built on.
package backendtest
