package mvcc

// span is a range of keys: [from, end), or everything from from on.
type span struct {
	from, end string
	open      bool // no end
}

// spanOf follows etcd's convention: no end is the single key, "\x00" is every
// key from key on.
func spanOf(key, end []byte) span {
	switch {
	case len(end) == 0:
		return pointSpan(string(key))
	case len(end) == 1 && end[0] == 0:
		return span{from: string(key), open: true}
	}
	return span{from: string(key), end: string(end)}
}

func pointSpan(key string) span { return span{from: key, end: key + "\x00"} }

// point says whether the span is exactly one key.
func (s span) point() bool {
	return !s.open && len(s.end) == len(s.from)+1 && s.end[len(s.from)] == 0 && s.end[:len(s.from)] == s.from
}

func (s span) contains(key string) bool {
	return key >= s.from && (s.open || key < s.end)
}

// bounds are the arguments that backends take.
func (s span) bounds() (from, end []byte) {
	if s.open {
		return bytesOf(s.from), nil
	}
	return bytesOf(s.from), bytesOf(s.end)
}
