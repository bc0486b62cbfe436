package fulltext

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/google/btree"
)

// id numbers a text; a text that is put again gets a new one, so that lists of
// ids only ever grow at their end.
type id uint64

// text is one text. It never changes.
type text[T any] struct {
	key    string
	text   string
	length int // in words
	value  T
}

// Index is an index of texts, each under a key, with a value. It may be used by
// many goroutines. Make it with New.
type Index[T any] struct {
	mu    sync.RWMutex
	last  id
	ids   map[string]id
	texts map[id]*text[T]
	words postings
	total int // words in all texts
}

// postings are the texts that each word is in, by id.
type postings struct {
	of         map[string][]id
	vocabulary *btree.BTreeG[string]
}

// index is what a query asks.
type index interface {
	withWord(string) []id
	withPrefix(string) []id
}

// New makes an empty index.
func New[T any]() *Index[T] {
	return &Index[T]{
		ids:   map[string]id{},
		texts: map[id]*text[T]{},
		words: postings{of: map[string][]id{}, vocabulary: btree.NewG(32, func(a, b string) bool { return a < b })},
	}
}

// Put puts a text in, in the place of the one under this key, if any.
func (x *Index[T]) Put(key, content string, value T) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.delete(key)
	x.last++
	tokens := tokenize(content)
	for _, word := range distinct(tokens) {
		if x.words.of[word] == nil {
			// It is a part of the text, which it would keep for ever.
			word = strings.Clone(word)
			x.words.vocabulary.ReplaceOrInsert(word)
		}
		x.words.of[word] = append(x.words.of[word], x.last)
	}
	x.total += len(tokens)
	x.ids[key] = x.last
	x.texts[x.last] = &text[T]{key, content, len(tokens), value}
}

// Delete takes a text out.
func (x *Index[T]) Delete(key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.delete(key)
}

// Keep takes all texts out but those under these keys.
func (x *Index[T]) Keep(keys map[string]bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key := range x.ids {
		if !keys[key] {
			x.delete(key)
		}
	}
}

func (x *Index[T]) delete(key string) {
	number, found := x.ids[key]
	if !found {
		return
	}
	old := x.texts[number]
	for _, word := range distinct(tokenize(old.text)) {
		list := x.words.of[word]
		if at, found := slices.BinarySearch(list, number); found {
			list = slices.Delete(list, at, at+1)
		}
		if x.words.of[word] = list; len(list) == 0 {
			delete(x.words.of, word)
			x.words.vocabulary.Delete(word)
		}
	}
	x.total -= old.length
	delete(x.texts, number)
	delete(x.ids, key)
}

func distinct(tokens []token) []string {
	all := make([]string, 0, len(tokens))
	for _, t := range tokens {
		all = append(all, t.word)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (p postings) withWord(word string) []id { return p.of[word] }

func (p postings) withPrefix(prefix string) []id {
	var all []id
	p.vocabulary.AscendGreaterOrEqual(prefix, func(word string) bool {
		if !strings.HasPrefix(word, prefix) {
			return false
		}
		all = append(all, p.of[word]...)
		return true
	})
	slices.Sort(all)
	return slices.Compact(all)
}

func (p phrase) candidates(x index) ([]id, bool) {
	var found []id
	for i, word := range p.words {
		var with []id
		if p.prefix && i == len(p.words)-1 {
			with = x.withPrefix(word)
		} else {
			with = x.withWord(word)
		}
		if i == 0 {
			found = with
		} else {
			found = intersect(found, with)
		}
	}
	return found, false
}

func (a and) candidates(x index) ([]id, bool) {
	var found []id
	all := true
	for _, n := range a {
		with, everything := n.candidates(x)
		switch {
		case everything:
		case all:
			found, all = with, false
		default:
			found = intersect(found, with)
		}
	}
	return found, all
}

func (o or) candidates(x index) ([]id, bool) {
	var found []id
	for _, n := range o {
		with, everything := n.candidates(x)
		if everything {
			return nil, true
		}
		found = append(slices.Clip(found), with...)
	}
	slices.Sort(found)
	return slices.Compact(found), false
}

func (not) candidates(index) ([]id, bool) { return nil, true }

// intersect takes what is in both of two sorted lists.
func intersect(a, b []id) []id {
	var both []id
	for len(a) > 0 && len(b) > 0 {
		switch cmp.Compare(a[0], b[0]) {
		case -1:
			a = a[1:]
		case 1:
			b = b[1:]
		default:
			both = append(both, a[0])
			a, b = a[1:], b[1:]
		}
	}
	return both
}
