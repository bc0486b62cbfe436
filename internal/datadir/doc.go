// Package datadir is the data folder of one appliance: where it lies, who owns
// it, what state.json says, and which sockets and ports belong to it.
//
// The supervisor opens a folder (and owns it until Close), the command line
// only looks into it (Inspect). The package opens no database and talks to no
// running appliance.
//
// Layout:
//
//	lock          held by the owner with flock; its text is the owner's pid
//	state.json    see State
//	kubeconfig    the administrator's, always current
//	pki/          certificates and keys
//	logs/         one file a component
//	run/          etcd.sock, member.sock and control.sock, unless their paths are too long
//	etcd/, *.db   the embedded databases
//	revisions     how far the store has handed out revisions
//	kubectl-cache what the embedded kubectl caches
package datadir
