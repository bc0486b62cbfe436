// Command taskctl runs a whole Kubernetes development appliance in one process.
package main

func main() {}
