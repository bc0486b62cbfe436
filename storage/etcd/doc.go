// Package etcd runs an etcd server in this process, as the store of an
// appliance whose data is to lie in etcd.
//
// It is a single member in a folder, answers on a unix socket and opens no
// port. What it acknowledges is durable. The etcd code ends the process on a
// failed disk write; here that becomes an error from [Server.Run], and the rest
// of the process decides.
package etcd
