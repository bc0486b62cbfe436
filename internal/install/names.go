package install

const (
	// FieldManager owns, in server-side apply, the fields of everything here.
	FieldManager = "taskctl"

	// ManagedByLabel with ManagedByValue marks the registrations: what must be
	// gone while the process that they point at is not running.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedByValue = "taskctl"

	// RunIDAnnotation on a registration carries the id of the run that it
	// points at.
	RunIDAnnotation = "taskctl.example.com/run-id"

	// registeredAtAnnotation changes with every Register: a changed APIService
	// is checked at once by the API server, an unchanged one after up to 30 s,
	// even if the server behind it has come back on the same port.
	registeredAtAnnotation = "taskctl.example.com/registered-at"

	// RunIDHeader is the response header in which the aggregator returns the
	// id of its run.
	RunIDHeader = "X-Taskctl-Run-Id"

	// systemNamespace is where the parts of taskctl live.
	systemNamespace = "taskctl-system"
)
