// Package storagetest has what tests of the store share: a real embedded etcd
// to compare with, and the differential test, which drives two endpoints with
// the same random operations and compares every answer, revision and event.
//
// Only tests import it.
package storagetest
