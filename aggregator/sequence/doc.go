// Package sequence hands out numbers that never repeat and never go back, not
// even across restarts, crashes or several processes at once.
//
// A process reserves a block of numbers by an optimistic update of a ConfigMap
// before it hands out the first of them. What a process that ends has not used
// of its block is lost; nothing else is.
package sequence
