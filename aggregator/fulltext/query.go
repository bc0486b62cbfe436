package fulltext

import (
	"slices"
	"strings"
)

// Query is a parsed query. Make it with Parse.
type Query struct{ root node }

// node is one part of a query.
type node interface {
	// matches tells whether a text matches.
	matches(words) bool
	// candidates finds, by the index, the texts that may match: all that do, and
	// maybe more. all stands for every text there is.
	candidates(index) (found []id, all bool)
	// leaves calls visit for the phrases that a text is to have.
	leaves(visit func(phrase))
}

type (
	// phrase is one word or several, one after the other. The last one may be
	// the beginning of a word.
	phrase struct {
		words  []string
		prefix bool
	}
	and []node
	or  []node
	not struct{ node node }
)

func (p phrase) matches(w words) bool { return w.count(p) > 0 }

func (p phrase) leaves(visit func(phrase)) { visit(p) }

func (a and) matches(w words) bool {
	return !slices.ContainsFunc(a, func(n node) bool { return !n.matches(w) })
}

func (a and) leaves(visit func(phrase)) {
	for _, n := range a {
		n.leaves(visit)
	}
}

func (o or) matches(w words) bool {
	return slices.ContainsFunc(o, func(n node) bool { return n.matches(w) })
}

func (o or) leaves(visit func(phrase)) {
	for _, n := range o {
		n.leaves(visit)
	}
}

func (n not) matches(w words) bool { return !n.node.matches(w) }

// leaves of what a text is not to have don't count.
func (not) leaves(func(phrase)) {}

// words are a text's words, by word.
type words struct {
	tokens []token
	at     map[string][]int // where a word stands, in words
}

func newWords(text string) words {
	w := words{tokens: tokenize(text), at: map[string][]int{}}
	for i, t := range w.tokens {
		w.at[t.word] = append(w.at[t.word], i)
	}
	return w
}

// count tells how often a phrase occurs.
func (w words) count(p phrase) int {
	count := 0
	w.each(p, func(int) { count++ })
	return count
}

// each visits where a phrase occurs: the number of its first word.
func (w words) each(p phrase, visit func(first int)) {
	if len(p.words) == 1 && p.prefix {
		for i := range w.tokens {
			if strings.HasPrefix(w.tokens[i].word, p.words[0]) {
				visit(i)
			}
		}
		return
	}
	for _, first := range w.at[p.words[0]] {
		if w.hasAt(p, first) {
			visit(first)
		}
	}
}

func (w words) hasAt(p phrase, first int) bool {
	if first+len(p.words) > len(w.tokens) {
		return false
	}
	for i, word := range p.words {
		at := w.tokens[first+i].word
		last := i == len(p.words)-1
		if at != word && !(last && p.prefix && strings.HasPrefix(at, word)) {
			return false
		}
	}
	return true
}
