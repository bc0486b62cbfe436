package fulltext

import (
	"strings"
	"unicode"
)

// token is one word of a text, and where it stands, in bytes.
type token struct {
	word       string
	start, end int
}

// tokenize takes the words out of a text.
func tokenize(text string) []token {
	var tokens []token
	start := -1
	end := func(at int) {
		if start >= 0 {
			tokens = append(tokens, token{strings.ToLower(text[start:at]), start, at})
			start = -1
		}
	}
	for at, r := range text {
		switch isWord := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r); {
		case !isWord:
			end(at)
		case start < 0:
			start = at
		}
	}
	end(len(text))
	return tokens
}
