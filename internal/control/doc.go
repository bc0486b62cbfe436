// Package control is the control socket of a running appliance: HTTP over a
// unix socket in the data folder, for status, logs and stop. The supervisor
// serves it, the command line is its client. It decides nothing: it asks the
// functions that it was given.
//
//	GET  /status                                   a Status as JSON
//	GET  /logs?component=NAME&since=TIME&follow=1  lines of text; component may be repeated
//	POST /stop                                     202 {"pid": N}; that process stops in order
//
// Errors are {"error": "…"} with a status of 4xx or 5xx. Who may open the
// socket may do all of it: the socket's folder belongs to the user alone.
package control
