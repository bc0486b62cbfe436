// Package e2e tests a whole appliance as its users see it: the real binary,
// driven through kubectl and client-go.
package e2e
