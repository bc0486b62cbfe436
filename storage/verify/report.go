package verify

import "fmt"

// breachesMax is how many breaches of one rule a report spells out for a
// backend.
const breachesMax = 100

// Breach is one violation of a rule.
type Breach struct {
	// Rule is what is violated: order, versions, route, twice, lease, meta
	// or unreadable.
	Rule string `json:"rule"`
	// Backend is where it was found.
	Backend string `json:"backend"`
	// Key is the key that is concerned, if one is.
	Key string `json:"key,omitempty"`
	// Message says what is wrong.
	Message string `json:"message"`
}

// Report is what was found.
type Report struct {
	// Backends are those that were checked.
	Backends []BackendReport `json:"backends"`
	Breaches []Breach        `json:"breaches"`
	// More is how many breaches were counted and not spelled out.
	More int `json:"more,omitempty"`
}

// BackendReport is what one backend holds.
type BackendReport struct {
	Name     string `json:"name"`
	Keys     int64  `json:"keys"`
	Versions int64  `json:"versions"`
	Leases   int64  `json:"leases"`
	Revision int64  `json:"revision"`
}

// Clean says that no rule is violated.
func (r *Report) Clean() bool { return len(r.Breaches) == 0 && r.More == 0 }

// reporter collects breaches, not too many of one kind.
type reporter struct {
	report Report
	counts map[[2]string]int
}

func (r *reporter) add(rule, backend, key, format string, args ...any) {
	kind := [2]string{rule, backend}
	r.counts[kind]++
	if r.counts[kind] > breachesMax {
		r.report.More++
		return
	}
	r.report.Breaches = append(r.report.Breaches, Breach{rule, backend, key, fmt.Sprintf(format, args...)})
}
