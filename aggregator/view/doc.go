// Package view keeps objects that are computed from others in memory and
// serves them with the semantics of a stored Kubernetes resource: get, list
// with limit and continue, watch with bookmarks, selectors, resource versions.
//
// Whoever computes the objects (a join of informers, say) tells the [View]
// about each change with [View.Commit]; the View gives it a number and that
// number is the resourceVersion. The rules, from the outside:
//
//   - One number for each change, whatever caused it. Numbers come from
//     [Numbers], which must never repeat one, not even after a restart.
//   - An object carries the number of the last change of it, a list the newest
//     number, a bookmark the newest number that its watch is past.
//   - A number that this View did not hand out, or whose change it no longer
//     holds, is answered with 410 Expired: clients list again.
//   - A continue token is served from the snapshot that its first page came
//     from, for five minutes; then 410 with a token that goes on from the same
//     place in the newest state, as Kubernetes does.
//   - Before [View.Populate] everything is 503 with Retry-After, never an empty
//     list.
//
// Reads cost as their result: a snapshot is a copy-on-write tree, so a list
// holds no lock while it walks. Watches read the history at their own pace, so
// a slow one holds up nobody; one that falls behind what the history holds is
// ended with 410.
//
// The package knows neither HTTP nor any API type.
package view
