// Package kind tests --cluster kind on the real thing: a container engine, a
// node image that it has, and the real binary.
//
// Without an engine, or without a node image, the tests are skipped and say so;
// with CI=true that is a failure. TASKCTL_KIND_IMAGE names the image, if it is
// not one that taskctl finds by itself.
package kind
