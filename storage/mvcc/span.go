package mvcc

// span is a range of keys: one key, [from, end), or everything from from on.
type span struct {
	from, end string
	single    bool // from alone
	open      bool // no end
}

// spanOf follows etcd's convention: no end is the single key, "\x00" is every
// key from key on.
func spanOf(key, end []byte) span {
	switch {
	case len(end) == 0:
		return span{from: string(key), single: true}
	case len(end) == 1 && end[0] == 0:
		return span{from: string(key), open: true}
	}
	return span{from: string(key), end: string(end)}
}

func pointSpan(key string) span { return span{from: key, single: true} }

// empty says whether no key can be in the span.
func (s span) empty() bool { return !s.single && !s.open && s.end <= s.from }

func (s span) contains(key string) bool {
	if s.single {
		return key == s.from
	}
	return key >= s.from && (s.open || key < s.end)
}

// bounds are the arguments that backends take.
func (s span) bounds() (from, end []byte) {
	switch {
	case s.single:
		return bytesOf(s.from), bytesOf(s.from + "\x00")
	case s.open:
		return bytesOf(s.from), nil
	}
	return bytesOf(s.from), bytesOf(s.end)
}
