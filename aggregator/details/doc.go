// Package details is the resource details: full-text search in the details of
// Tasks, listed with the query parameter q.
//
// A [Searcher] is fed by a reflector of Tasks and keeps an index in memory (see
// package fulltext for the query language). [NewREST] serves it, to those who may
// list the Tasks themselves. The generic API server hands no query parameters of
// its own to a resource, so [WithQuery] has to stand in front.
package details
