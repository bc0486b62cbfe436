// Package harness runs the real taskctl binary for tests: an appliance of its
// own for each caller, in a temporary folder, on free ports, stopped and
// removed when the test ends. Tests that use it link no control plane, so they
// build fast and can run with the race detector.
package harness
