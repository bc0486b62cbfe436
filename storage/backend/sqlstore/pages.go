package sqlstore

const (
	pageBytes    = 1 << 20 // what a page should hold
	smallestPage = 16
	largestPage  = 8192
)

// Pages chooses how many rows to ask a server for at a time. A scan is cut
// into pages because a statement keeps a snapshot of the database for as long
// as its rows are read; the first page is small because many scans end in it.
type Pages struct{ limit int }

// NewPages begins with a page of first rows.
func NewPages(first int) Pages { return Pages{limit: first} }

// Limit is the number of rows to ask for.
func (p *Pages) Limit() int { return p.limit }

// Read says what the page just read held, and sizes the next one.
func (p *Pages) Read(rows, bytes int) {
	if rows == 0 {
		return
	}
	perRow := max(bytes/rows, 1)
	p.limit = max(min(p.limit*4, pageBytes/perRow, largestPage), smallestPage)
}
