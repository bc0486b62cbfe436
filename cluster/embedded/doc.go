// Package embedded runs kube-apiserver and the useful part of
// kube-controller-manager in this process.
//
// Both have the shape of every part of the program: Run(ctx, ready) blocks
// until ctx ends. They can be run again and again in one process, one after
// another. The supervisor and package cluster use them.
//
// Kubernetes keeps some state for the whole process: feature gates (the first
// start decides), klog, and what to do on a fatal error. [CaptureLogs] and
// [CaptureExit] say where the last two go; the rest of the package leaves them
// alone. It parses no flags and installs no signal handler.
package embedded
