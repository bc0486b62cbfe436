package cli

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// reorder moves flags in front of arguments: urfave/cli stops looking for
// flags at the first argument. Common flags may also stand before the command.
// What follows "--" stays as it is, and so does everything behind the name of
// a command that passes its arguments on (kubectl), or behind the first
// argument of one that runs a command (ci).
func reorder(app *cli.App, args []string) []string {
	if len(args) == 0 {
		return args
	}
	var names, flags, rest []string
	commands, known := app.Commands, app.Flags
	words := args[1:]
	for len(words) > 0 {
		word := words[0]
		switch {
		case word == "--":
			rest = append(rest, words...)
			words = nil
		case isFlag(word):
			n := flagLength(known, words)
			flags = append(flags, expand(words[:n])...)
			words = words[n:]
		default:
			command := find(commands, word)
			if command == nil {
				rest = append(rest, word)
				words = words[1:]
				if len(names) == 0 || passesOn(names[0]) {
					rest = append(rest, words...)
					words = nil
				}
				continue
			}
			if command.SkipFlagParsing {
				// Our flags stay in front, where the app takes them.
				return append(append(append([]string{args[0]}, flags...), word), words[1:]...)
			}
			names = append(names, word)
			commands, known = command.Subcommands, append(known[:len(known):len(known)], command.Flags...)
			words = words[1:]
		}
	}
	ordered := append([]string{args[0]}, names...)
	return append(append(ordered, flags...), rest...)
}

// passesOn says that the command's arguments are another command line.
func passesOn(command string) bool { return command == "ci" }

func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' }

// flagLength is how many words the flag at the start of words has: two if its
// value stands in a word of its own.
func flagLength(known []cli.Flag, words []string) int {
	name := strings.TrimLeft(words[0], "-")
	if strings.Contains(name, "=") || len(words) == 1 {
		return 1
	}
	for _, flag := range known {
		for _, candidate := range flag.Names() {
			if candidate != name {
				continue
			}
			if _, isBool := flag.(*cli.BoolFlag); isBool {
				return 1
			}
			return 2
		}
	}
	return 1
}

// expand makes "-v -v" of "-vv".
func expand(words []string) []string {
	if word := words[0]; len(words) == 1 && len(word) > 2 && strings.Trim(word[1:], "v") == "" {
		var expanded []string
		for range word[1:] {
			expanded = append(expanded, "-v")
		}
		return expanded
	}
	return words
}

func find(commands []*cli.Command, name string) *cli.Command {
	for _, command := range commands {
		if command.HasName(name) {
			return command
		}
	}
	return nil
}
