package fulltext

import (
	"strings"
)

const (
	// snippetWords is how many words of a text a snippet shows.
	snippetWords = 24
	// snippetLead is how many of them stand before the first that was found.
	snippetLead = 4
)

// Snippet is the part of a text that has the most of what is searched for, with
// each such word in brackets.
func (q *Query) Snippet(content string) string {
	w := newWords(content)
	if len(w.tokens) == 0 {
		return ""
	}
	hit := make([]bool, len(w.tokens))
	q.root.leaves(func(p phrase) {
		w.each(p, func(first int) {
			for i := range p.words {
				hit[first+i] = true
			}
		})
	})
	first := max(0, densest(hit)-snippetLead)
	end := min(len(w.tokens), first+snippetWords)

	var snippet strings.Builder
	if first > 0 {
		snippet.WriteString("… ")
	}
	at := w.tokens[first].start
	for i := first; i < end; i++ {
		snippet.WriteString(content[at:w.tokens[i].start])
		at = w.tokens[i].end
		word := content[w.tokens[i].start:at]
		if hit[i] {
			word = "[" + word + "]"
		}
		snippet.WriteString(word)
	}
	if end < len(w.tokens) {
		snippet.WriteString(" …")
	}
	return snippet.String()
}

// densest finds where the most hits follow within a snippet; 0 if there are
// none.
func densest(hit []bool) int {
	best, most := 0, 0
	for i := range hit {
		if !hit[i] {
			continue
		}
		count := 0
		for _, h := range hit[i:min(len(hit), i+snippetWords-snippetLead)] {
			if h {
				count++
			}
		}
		if count > most {
			best, most = i, count
		}
	}
	return best
}
