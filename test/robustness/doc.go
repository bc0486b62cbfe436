// Package robustness drives the store with etcd's own robustness traffic and
// checks what its clients saw with etcd's model and validators, while the
// process, and the database's server where there is one, are killed at random
// moments and compaction runs.
//
// The validators want to know what was really stored. That comes from an audit
// table that triggers fill in the same transactions, not from the store itself.
//
// Settings, by environment:
//
//	TASKCTL_BIN              the program to test; without it, it is built
//	TASKCTL_TEST_SEED        repeats a run's traffic and kills
//	TASKCTL_TEST_KILLS       how often something is killed for each kind of traffic (2)
//
// With -short, as the test suite runs them, each database gets two of the five
// kinds of traffic.
//
// PostgreSQL is tested with a server of the test's own, made by initdb.
package robustness
