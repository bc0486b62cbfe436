// Package kubernetes runs Kubernetes' own tests of its storage layer
// (k8s.io/apiserver/pkg/storage/testing) against our endpoint, through the
// ordinary etcd3 store and client, once for each backend. It has tests only.
//
// SQLite always runs. PostgreSQL and MySQL run where TASKCTL_TEST_POSTGRES and
// TASKCTL_TEST_MYSQL name a server by DSN.
package kubernetes
