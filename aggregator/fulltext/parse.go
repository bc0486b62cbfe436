package fulltext

import (
	"fmt"
	"strings"
	"unicode"
)

const (
	// maxQuery is how many characters a query may have.
	maxQuery = 4096
	// maxDepth is how deep parentheses and NOTs may be nested.
	maxDepth = 50
)

// SyntaxError says what is wrong with a query, and where.
type SyntaxError struct {
	// Position in the query, in characters, from 1.
	Position int
	Reason   string
}

// Error implements error.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("at character %d: %s", e.Position, e.Reason)
}

// Parse reads a query. The error is a *SyntaxError.
func Parse(text string) (*Query, error) {
	p := &parser{text: []rune(text)}
	if len(p.text) > maxQuery {
		return nil, p.fail(maxQuery, "the query is longer than %d characters", maxQuery)
	}
	root, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if p.skip(); p.at < len(p.text) { // only a parenthesis ends an expression early
		return nil, p.fail(p.at, "there is no ( for this )")
	}
	return &Query{root}, nil
}

// parser reads from left to right, by recursive descent.
type parser struct {
	text []rune
	at   int
}

func (p *parser) fail(at int, format string, args ...any) error {
	return &SyntaxError{Position: at + 1, Reason: fmt.Sprintf(format, args...)}
}

func (p *parser) skip() {
	for p.at < len(p.text) && unicode.IsSpace(p.text[p.at]) {
		p.at++
	}
}

// peek returns the next word, parenthesis or quotation mark without taking it;
// "" is the end.
func (p *parser) peek() string {
	p.skip()
	end := p.at
	for end < len(p.text) && !unicode.IsSpace(p.text[end]) && !strings.ContainsRune(`()"`, p.text[end]) {
		end++
	}
	if end == p.at && end < len(p.text) {
		end++
	}
	return string(p.text[p.at:end])
}

// take takes the next word if it is this one.
func (p *parser) take(word string) bool {
	if p.peek() != word {
		return false
	}
	p.at += len(word) // operators and parentheses are ASCII
	return true
}

func (p *parser) or(depth int) (node, error) {
	var either or
	for {
		next, err := p.and(depth)
		if err != nil {
			return nil, err
		}
		either = append(either, next)
		if !p.take("OR") {
			break
		}
	}
	if len(either) == 1 {
		return either[0], nil
	}
	return either, nil
}

func (p *parser) and(depth int) (node, error) {
	var all and
	for {
		next, err := p.unary(depth)
		if err != nil {
			return nil, err
		}
		all = append(all, next)
		if p.take("AND") {
			continue
		}
		if next := p.peek(); next == "" || next == "OR" || next == ")" {
			break
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return all, nil
}

func (p *parser) unary(depth int) (node, error) {
	if p.skip(); depth > maxDepth {
		return nil, p.fail(p.at, "the query is nested more than %d times", maxDepth)
	}
	next := p.peek()
	start := p.at
	switch next {
	case "":
		return nil, p.fail(start, "a word is missing here")
	case "AND", "OR", ")":
		return nil, p.fail(start, "a word is missing before %s", next)
	case "NOT":
		p.take(next)
		inner, err := p.unary(depth + 1)
		if err != nil {
			return nil, err
		}
		return not{inner}, nil
	case "(":
		p.take(next)
		inner, err := p.or(depth + 1)
		if err != nil {
			return nil, err
		}
		if !p.take(")") {
			return nil, p.fail(start, "this ( is never closed")
		}
		return inner, nil
	case `"`:
		return p.quoted(start)
	}
	p.at += len([]rune(next))
	return p.phrase(start, next)
}

func (p *parser) quoted(start int) (node, error) {
	for end := start + 1; end < len(p.text); end++ {
		if p.text[end] != '"' {
			continue
		}
		inner := string(p.text[start+1 : end])
		p.at = end + 1
		if p.at < len(p.text) && p.text[p.at] == '*' { // "red sho"* is "red sho*"
			p.at++
			inner += "*"
		}
		return p.phrase(start+1, inner)
	}
	return nil, p.fail(start, "this quotation mark is never closed")
}

// phrase reads what stands at start.
func (p *parser) phrase(start int, text string) (node, error) {
	text, prefix := strings.CutSuffix(text, "*")
	if star := strings.Index(text, "*"); star >= 0 {
		return nil, p.fail(start+len([]rune(text[:star])), "a * may only end a word")
	}
	var result phrase
	tokens := tokenize(text)
	for _, t := range tokens {
		result.words = append(result.words, t.word)
	}
	if len(tokens) == 0 {
		return nil, p.fail(start, "there is no letter or digit to search for")
	}
	if prefix && tokens[len(tokens)-1].end != len(text) {
		return nil, p.fail(start+len([]rune(text)), "a * may only end a word")
	}
	result.prefix = prefix
	return result, nil
}
