// Package kubeconfig puts an appliance's entries into a user's kubeconfig and
// takes them out again.
//
// It works on the file's YAML nodes, so that fields, comments and entries that
// it does not know stay as they are. An entry of ours carries the extension
// [Extension] with the data folder that it belongs to; one without it, or with
// another folder in it, is somebody else's and is never touched. The package
// talks to no cluster.
package kubeconfig
