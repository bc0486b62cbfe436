// Package admin is what an operator asks of a store beside the etcd API: a
// backup, a check of the store's rules, where keys are stored and why. A store
// that runs answers over HTTP, on the listeners that serve the etcd API, under
// the same TLS; the functions behind that are also used on a store that is
// opened for it.
//
//	POST /taskctl/backup             a backup (package backup)
//	POST /taskctl/verify             a verify.Report as JSON
//	POST /taskctl/routes             Routes as JSON
//	POST /taskctl/explain?key=KEY    an Explanation as JSON; &prefix=1: of all keys below
//
// Errors are {"error": "…"}. Requests with an Origin are refused: a page in
// somebody's browser has no business here.
package admin
