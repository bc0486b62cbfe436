package kind

import "errors"

// Problem is why a node can't be, and what to do about it.
type Problem struct {
	// Reason is a clause, like "docker is not running".
	Reason string
	// Advice is what to try next.
	Advice string
	// Err is the engine's own error, nil if there is none.
	Err error
}

func (p *Problem) Error() string {
	text := p.Reason + ": " + p.Advice
	if p.Err != nil {
		text += " (" + p.Err.Error() + ")"
	}
	return text
}

func (p *Problem) Unwrap() error { return p.Err }

// Reason is an error without the advice, for somebody who did not ask for a
// node.
func Reason(err error) string {
	var problem *Problem
	if errors.As(err, &problem) {
		return problem.Reason
	}
	return err.Error()
}
