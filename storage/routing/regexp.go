package routing

import (
	"regexp/syntax"
	"unicode/utf8"
)

// automaton is a regular expression as the standard library compiles it. It is
// run over what all keys of a range begin with, to find out whether one of them
// can match, or each does.
type automaton struct {
	program *syntax.Prog
}

func newAutomaton(expression string) (*automaton, error) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	return &automaton{program}, err
}

// shareOf says how many of the texts that begin with start the expression
// matches somewhere.
func (a *automaton) shareOf(start string) share {
	if !utf8.ValidString(start) {
		return some // it may end within a character
	}
	r := &run{automaton: a, now: map[uint32]bool{}, seen: map[uint32]bool{}}
	previous := rune(-1)
	for _, c := range start {
		r.follow(uint32(a.program.Start), previous, true)
		if r.matched {
			return whole
		}
		r.step(c)
		previous = c
	}
	r.follow(uint32(a.program.Start), previous, true)
	switch {
	case r.matched:
		return whole
	case len(r.now) > 0 || r.perhaps:
		return some
	}
	return none
}

// run is the state of an automaton at one place of a text. The values of the
// maps say whether an instruction was reached for certain.
type run struct {
	*automaton
	now     map[uint32]bool // instructions that wait for the next character
	seen    map[uint32]bool // instructions that were followed here
	matched bool            // whatever follows
	perhaps bool            // depending on what follows
}

// step moves over a character.
func (r *run) step(c rune) {
	before := r.now
	r.now, r.seen = map[uint32]bool{}, map[uint32]bool{}
	for pc, certain := range before {
		if r.program.Inst[pc].MatchRune(c) {
			r.follow(r.program.Inst[pc].Out, c, certain)
		}
	}
}

// follow adds an instruction and all that are reached from it without a
// character. An assertion about what follows may hold; then nothing behind it
// is certain.
func (r *run) follow(pc uint32, previous rune, certain bool) {
	if before, there := r.seen[pc]; there && (before || !certain) {
		return
	}
	r.seen[pc] = certain
	switch i := &r.program.Inst[pc]; i.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		r.follow(i.Out, previous, certain)
		r.follow(i.Arg, previous, certain)
	case syntax.InstCapture, syntax.InstNop:
		r.follow(i.Out, previous, certain)
	case syntax.InstEmptyWidth:
		wanted := syntax.EmptyOp(i.Arg)
		if wanted&syntax.EmptyBeginText != 0 && previous >= 0 ||
			wanted&syntax.EmptyBeginLine != 0 && previous >= 0 && previous != '\n' {
			return
		}
		const later = syntax.EmptyEndLine | syntax.EmptyEndText | syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
		r.follow(i.Out, previous, certain && wanted&later == 0)
	case syntax.InstMatch:
		r.matched = r.matched || certain
		r.perhaps = r.perhaps || !certain
	case syntax.InstFail:
	default:
		r.now[pc] = certain
	}
}
