// Package dbserver gives tests real database servers: a database of their own
// on the servers that test/servers/start has started, or a throw-away server
// that a test may kill and restart.
//
// Where the server is missing, a test is skipped with its name; with CI=true it
// fails.
package dbserver
