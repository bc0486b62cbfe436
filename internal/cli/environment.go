package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Environment is what the program gets from the process around it, so that
// nothing below asks for it by itself.
type Environment struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	// Terminal says whether Stderr is a terminal that can move its cursor.
	Terminal bool
}

// OS is the process's own environment.
func OS() Environment {
	return Environment{
		Stdin:    os.Stdin,
		Stdout:   os.Stdout,
		Stderr:   os.Stderr,
		Getenv:   os.Getenv,
		Terminal: term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb",
	}
}
