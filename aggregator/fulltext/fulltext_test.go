package fulltext

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func everything(string) bool { return true }

func parse(t *testing.T, text string) *Query {
	t.Helper()
	q, err := Parse(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return q
}

// find returns the keys of what matches, best first.
func find(t *testing.T, x *Index[string], query string) string {
	t.Helper()
	var keys []string
	for _, match := range x.Search(parse(t, query), everything) {
		keys = append(keys, match.Value)
	}
	return strings.Join(keys, " ")
}

func filled(texts map[string]string) *Index[string] {
	x := New[string]()
	for key, content := range texts {
		x.Put(key, content, key)
	}
	return x
}

func TestQueries(t *testing.T) {
	x := filled(map[string]string{
		"a": "Paint the red door",
		"b": "paint the blue door, then the red gate",
		"c": "Order more paint",
		"d": "re-open the Übergang; 3 steps",
		"e": "",
	})
	for query, want := range map[string]string{
		"paint":                      "c a b", // the shorter, the better
		"RED paint":                  "a b",
		"red AND paint":              "a b",
		`"red door"`:                 "a",
		`"door red"`:                 "",
		"blue OR order":              "c b",
		"order OR blue red":          "b c", // AND binds more than OR
		"(order OR blue) paint":      "c b",
		"paint NOT red":              "c",
		"paint AND NOT (red OR foo)": "c",
		"NOT paint":                  "d e",
		"NOT NOT blue":               "b",
		"pai* blu*":                  "b",
		`"the re"*`:                  "a b",
		`"the re*"`:                  "a b",
		"re-open":                    "d",
		"re-closed":                  "",
		"übergang 3":                 "d",
		"or":                         "",
		"nothing":                    "",
	} {
		if got := find(t, x, query); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}

func TestABrokenQueryNamesThePlace(t *testing.T) {
	for query, want := range map[string]struct {
		position int
		part     string
	}{
		"red AND":                         {8, "a word is missing here"},
		"AND red":                         {1, "before AND"},
		"red OR OR x":                     {8, "before OR"},
		"a (b OR c":                       {3, "never closed"},
		"a b) c":                          {4, "no ( for this )"},
		"()":                              {2, "before )"},
		`ü "b c`:                          {3, "never closed"},
		"a*b":                             {2, "may only end a word"},
		"a --- b":                         {3, "no letter or digit"},
		"*":                               {1, "no letter or digit"},
		"a-*":                             {3, "may only end a word"},
		`""`:                              {2, "no letter or digit"},
		"NOT":                             {4, "a word is missing here"},
		"":                                {1, "a word is missing here"},
		strings.Repeat("(", 200) + "a":    {52, "nested"},
		strings.Repeat("NOT ", 200) + "a": {205, "nested"},
		strings.Repeat("a", 5000):         {4097, "longer than"},
	} {
		_, err := Parse(query)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Position != want.position || !strings.Contains(syntax.Reason, want.part) {
			t.Errorf("%.30s: got %v, want %q at %d", query, err, want.part, want.position)
		}
	}
}

func TestTheRarerWordCountsMore(t *testing.T) {
	x := New[string]()
	for i := range 20 {
		x.Put(fmt.Sprint("k", i), "common words here", fmt.Sprint("k", i))
	}
	x.Put("rare", "rare words here", "rare")
	x.Put("twice", "rare rare here", "twice")
	if got := find(t, x, "rare OR common"); !strings.HasPrefix(got, "twice rare k0 k1 k10 ") {
		t.Errorf("got %s", got)
	}
}

func TestSnippets(t *testing.T) {
	long := strings.Repeat("filler ", 50) + "then the Red shoes, at last " + strings.Repeat("more ", 50)
	for query, want := range map[string]string{
		`"red shoes" OR filler`: "[filler] [filler]",
		`"red shoes"`:           "… filler filler then the [Red] [shoes], at last more",
		"sho*":                  "… filler then the Red [shoes], at last more",
		"NOT nothing":           "filler filler",
	} {
		got := parse(t, query).Snippet(long)
		if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, " …") || len(strings.Fields(got)) > snippetWords+2 {
			t.Errorf("%s: got %q, want %q…", query, got, want)
		}
	}
	if got := parse(t, "b").Snippet("a (b)!"); got != "a ([b]" {
		t.Errorf("got %q", got)
	}
	if got := parse(t, "NOT b").Snippet(" ... "); got != "" {
		t.Errorf("got %q", got)
	}
}

// TestTheIndexFindsWhatAScanFinds puts, replaces and deletes texts at random and
// asks random queries.
func TestTheIndexFindsWhatAScanFinds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	word := func() string { return string([]byte{'a' + byte(random.IntN(4)), 'a' + byte(random.IntN(2))}) }
	var query func(depth int) string
	query = func(depth int) string {
		switch n := random.IntN(8); {
		case depth > 3 || n < 3:
			return word()
		case n == 3:
			return word()[:1] + "*"
		case n == 4:
			return `"` + word() + " " + word() + `"`
		case n == 5:
			return "NOT " + query(depth+1)
		case n == 6:
			return "(" + query(depth+1) + " OR " + query(depth+1) + ")"
		}
		return "(" + query(depth+1) + " " + query(depth+1) + ")"
	}
	x, texts := New[string](), map[string]string{}
	for step := range 3000 {
		key := fmt.Sprint("k", random.IntN(40))
		if random.IntN(4) == 0 {
			x.Delete(key)
			delete(texts, key)
		} else {
			var content []string
			for range random.IntN(6) {
				content = append(content, word())
			}
			texts[key] = strings.Join(content, " ")
			x.Put(key, texts[key], key)
		}
		if step%500 == 400 {
			kept := map[string]bool{"k1": true, "k2": true, "k3": true}
			x.Keep(kept)
			for key := range texts {
				if !kept[key] {
					delete(texts, key)
				}
			}
		}
		text := query(0)
		var want []string
		for key, content := range texts {
			if parse(t, text).root.matches(newWords(content)) {
				want = append(want, key)
			}
		}
		got := strings.Fields(find(t, x, text))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("step %d: %s: got %v, want %v in %v", step, text, got, want, texts)
		}
	}
	x.Keep(nil)
	if len(x.words.of) != 0 || x.words.vocabulary.Len() != 0 || x.total != 0 || len(x.texts) != 0 {
		t.Errorf("an empty index holds %v, %d words", x.words.of, x.total)
	}
}

// TestASearchLooksAtWhatHasItsWords counts the texts that are looked at.
func TestASearchLooksAtWhatHasItsWords(t *testing.T) {
	x := New[string]()
	for i := range 10_000 {
		x.Put(fmt.Sprint(i), fmt.Sprintf("task number%d of many", i), "")
	}
	for query, want := range map[string]int{"number77": 1, "number77 many": 1, "number777*": 11, `"task number5"`: 1, "many NOT number1*": 10_000} {
		looked := 0
		x.Search(parse(t, query), func(string) bool { looked++; return true })
		if looked != want {
			t.Errorf("%s: %d texts are looked at, want %d", query, looked, want)
		}
	}
}
