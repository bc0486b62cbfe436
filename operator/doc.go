// Package operator reconciles Tasks and admits them.
//
// RunController watches Tasks, keeps their status, announces what happens to
// them as Events and deletes finished ones when their time is up. RunWebhooks
// serves the admission webhooks. The supervisor runs both inside the appliance,
// and the command `operator run` runs them inside a cluster; each may be run
// again in the same process after it returned.
//
// # Announcing exactly once
//
// A transition of a Task becomes one Event, whatever crashes in between:
//
//   - what a Task's status records (observedGeneration, finishedAt, the Overdue
//     condition) is announced and never announced again. So a restart, a resync
//     or the expiry of Events changes nothing, and a settled Task causes no
//     write;
//   - the status advances only after the Event is stored, in one write;
//   - the Event's name is made from the Task's UID and the transition. After a
//     crash between Event and status the same Event is created again, and that
//     it exists already is success.
//
// The package knows the cluster as a rest.Config, reads no Secrets and needs
// no more than the ClusterRole in manifests/rbac/operator.yaml.
package operator
