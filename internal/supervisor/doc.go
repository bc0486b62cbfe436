// Package supervisor is the appliance: which components there are, what each
// needs, and how they are wired to one another.
//
// It is the only package that knows cluster, storage, operator and aggregator
// at once, and it contains none of their logic. The command line makes an
// [Appliance] and runs it; an appliance handles no signals and prints nothing,
// it reports [Event] values. Kubernetes has process-wide state, so a process
// runs one appliance at a time.
package supervisor
