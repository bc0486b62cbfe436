// Package config reads the configuration file of an appliance, strictly: an
// unknown field, a value of the wrong kind, a backend that is not declared, a
// route that can never match and an endpoint that doesn't parse are errors that
// name file, line and field. It decides nothing about what it read, opens no
// database, and keeps passwords out of its errors.
package config
