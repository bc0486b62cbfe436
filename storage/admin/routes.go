package admin

import (
	"context"
	"slices"
	"time"

	"github.com/taskctl-dev/taskctl/storage"
	"github.com/taskctl-dev/taskctl/storage/routing"
)

// Routes is where a store keeps what.
type Routes struct {
	Revision int64        `json:"revision"`
	Rules    []Rule       `json:"rules"`
	Backends []BackendUse `json:"backends"`
}

// Rule is a rule with what it matches now; the last one is the default.
type Rule struct {
	// Rule is the rule in words, "default" for the last one.
	Rule    string `json:"rule"`
	Backend string `json:"backend"`
	Keys    int64  `json:"keys"`
}

// BackendUse is what one backend holds and does.
type BackendUse struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	Keys int    `json:"keys"`
	// Bytes is what the database occupies, InUse what of it holds data; old
	// versions count until they are compacted.
	Bytes int64 `json:"bytes"`
	InUse int64 `json:"bytesInUse"`
	// WritesPerSecond are versions of keys, measured just now.
	WritesPerSecond float64 `json:"writesPerSecond"`
	Revision        int64   `json:"revision"`
	// Down says why the backend does not answer.
	Down string `json:"down,omitempty"`
}

// ListRoutes counts what each rule matches, and measures for a while how much
// is written.
func ListRoutes(ctx context.Context, store *storage.Store, measure time.Duration) (Routes, error) {
	before, began := store.Backends(), time.Now()
	answer := Routes{Rules: rules(store.Router)}
	store.Keys(func(_ int, key string) bool {
		rule, _ := store.Router.Match(key)
		if rule == routing.Default {
			rule = len(answer.Rules) - 1
		}
		answer.Rules[rule].Keys++
		return ctx.Err() == nil
	})
	select {
	case <-time.After(measure - time.Since(began)):
	case <-ctx.Done():
		return answer, ctx.Err()
	}
	passed := time.Since(began).Seconds()
	for i, now := range store.Backends() {
		use := BackendUse{
			Name: now.Name, Kind: now.Kind, Keys: now.Keys, Bytes: now.Size.Allocated, InUse: now.Size.InUse, Revision: now.Revision,
			WritesPerSecond: float64(now.Written-before[i].Written) / passed,
		}
		if now.Down != nil {
			use.Down = now.Down.Error()
		}
		answer.Backends = append(answer.Backends, use)
		answer.Revision = max(answer.Revision, now.Revision)
	}
	return answer, nil
}

// rules are those of the router in words, the default one last.
func rules(router *routing.Router) []Rule {
	var all []Rule
	for _, rule := range router.Rules() {
		all = append(all, Rule{Rule: rule.String(), Backend: rule.Backend})
	}
	return append(all, Rule{Rule: defaultRule, Backend: router.Backends()[0]})
}

// defaultRule is what the rule of keys is called that none matches.
const defaultRule = "default"

// Explanation says where a key is stored and why.
type Explanation struct {
	Key string `json:"key"`
	// Rule is the rule that decides, "default" if none matches.
	Rule string `json:"rule"`
	// Number is the rule's position, from 1; 0 is the default.
	Number  int    `json:"ruleNumber"`
	Backend string `json:"backend"`
	Kind    string `json:"kind,omitempty"`
	// Row is where it lies, nil if there is no such key.
	Row *Row `json:"row,omitempty"`
	// Keys is how many keys begin with Key, and Backends which may hold such,
	// where Key is the beginning of keys.
	Keys     int64    `json:"keys,omitempty"`
	Backends []string `json:"backends,omitempty"`
}

// Row is where a key's newest version lies, and its numbers.
type Row struct {
	ID      int64 `json:"id"`
	Create  int64 `json:"createRevision"`
	Mod     int64 `json:"modRevision"`
	Version int64 `json:"version"`
	Lease   int64 `json:"lease,omitempty"`
}

// ExplainRule answers from the rules alone, for a key or for everything that
// begins with it.
func ExplainRule(router *routing.Router, key string, prefix bool) Explanation {
	rule, backend := router.Match(key)
	e := Explanation{Key: key, Rule: defaultRule, Number: rule + 1, Backend: router.Backends()[backend]}
	if rule != routing.Default {
		e.Rule = router.Rules()[rule].String()
	}
	if prefix {
		for _, index := range router.Overlap(key, prefixEnd(key)) {
			e.Backends = append(e.Backends, router.Backends()[index])
		}
	}
	return e
}

// Explain adds what the store holds under the key.
func Explain(store *storage.Store, key string, prefix bool) Explanation {
	e := ExplainRule(store.Router, key, prefix)
	all := store.Backends()
	e.Kind = all[slices.Index(store.Router.Backends(), e.Backend)].Kind
	if found, ok := store.Locate(key); ok {
		e.Row = &Row{ID: found.ID, Create: found.Create, Mod: found.Mod, Version: found.Version, Lease: found.LeaseID}
	}
	if prefix {
		e.Keys = store.Count(key, prefixEnd(key))
	}
	return e
}

// prefixEnd is the end of the range of keys that begin with a text.
func prefixEnd(prefix string) string {
	end := []byte(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return string(end[:i+1])
		}
	}
	return ""
}
