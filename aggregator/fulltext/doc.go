// Package fulltext is an index of short texts in memory, and a small query
// language:
//
//	red shoes          both words
//	"red shoes"        the phrase
//	red OR blue        one of them, or both; AND binds more than OR
//	red AND NOT shoes  the first without the second; AND may be left out
//	sho*               words that begin so, also as a phrase's last word
//	(a OR b) c         parentheses group
//
// Words are runs of letters and digits, compared without regard to case. A word
// with other characters in it, as in re-open, is a phrase. Matches are ranked by
// BM25.
//
// The package knows nothing of what is indexed. It starts no goroutine.
package fulltext
