package fulltext

import (
	"cmp"
	"math"
	"slices"
)

// BM25's usual parameters: how fast more occurrences stop to count more, and how
// much longer texts are marked down.
const (
	saturation = 1.2
	lengthBias = 0.75
)

// Match is a text that was found.
type Match[T any] struct {
	Value T
	// Score is 0 or more; the more the better.
	Score float64

	key string
}

// Search finds the texts that match, of those that are to be kept, best first
// and by key where they are equally good. The work grows with the texts that
// have the words of the query; a query of nothing but NOT looks at all.
func (x *Index[T]) Search(q *Query, keep func(T) bool) []Match[T] {
	texts, rank := x.candidates(q)
	var matches []Match[T]
	for _, t := range texts {
		if !keep(t.value) {
			continue
		}
		if w := newWords(t.text); q.root.matches(w) {
			matches = append(matches, Match[T]{t.value, rank.score(w), t.key})
		}
	}
	slices.SortFunc(matches, func(a, b Match[T]) int {
		return cmp.Or(-cmp.Compare(a.Score, b.Score), cmp.Compare(a.key, b.key))
	})
	return matches
}

// candidates collects, while nothing changes, what the rest of a search needs.
func (x *Index[T]) candidates(q *Query) ([]*text[T], ranking) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found, all := q.root.candidates(x.words)
	texts := make([]*text[T], 0, len(found))
	if all {
		for _, t := range x.texts {
			texts = append(texts, t)
		}
	} else {
		for _, number := range found {
			texts = append(texts, x.texts[number])
		}
	}
	rank := ranking{average: float64(x.total) / float64(max(1, len(x.texts)))}
	q.root.leaves(func(p phrase) {
		with, _ := p.candidates(x.words)
		in, of := float64(len(with)), float64(len(x.texts))
		rank.weights = append(rank.weights, weight{p, math.Log(1 + (of-in+0.5)/(in+0.5))})
	})
	return texts, rank
}

// ranking scores texts.
type ranking struct {
	average float64 // words in a text
	weights []weight
}

// weight is how much a phrase counts: the rarer, the more.
type weight struct {
	phrase phrase
	value  float64
}

func (r ranking) score(w words) float64 {
	length := 1 - lengthBias + lengthBias*float64(len(w.tokens))/max(r.average, 1)
	score := 0.0
	for _, weight := range r.weights {
		count := float64(w.count(weight.phrase))
		score += weight.value * count * (saturation + 1) / (count + saturation*length)
	}
	return score
}
