package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// scripts make a shell ask `taskctl __complete WORDS... CURRENT`, which answers
// with one candidate a line, a tab, and what it is; nothing means files.
var scripts = map[string]string{
	"bash": `# bash completion for taskctl; load it with: source <(taskctl completion bash)
_taskctl() {
  local IFS=$'\n' line candidates=()
  while read -r line; do
    [[ $line == :* ]] && continue # kubectl's directive to cobra's own script
    candidates+=("${line%%$'\t'*}")
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=($(compgen -W "${candidates[*]}" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _taskctl taskctl
`,
	"zsh": `#compdef taskctl
# zsh completion for taskctl; load it with: source <(taskctl completion zsh)
_taskctl() {
  local line
  local -a candidates
  for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n "$line" && "$line" != :* ]] && candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( ${#candidates} )); then
    _describe taskctl candidates
  else
    _files
  fi
}
compdef _taskctl taskctl
`,
	"fish": `# fish completion for taskctl; load it with: taskctl completion fish | source
function __taskctl_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] __complete $words[2..-1] 2>/dev/null | string match -v -r '^:'
end
complete -c taskctl -a '(__taskctl_complete)'
`,
}

func (p *program) completionCommand() *cli.Command {
	return &cli.Command{
		Name:        "completion",
		Usage:       "print a completion script for a shell",
		ArgsUsage:   "bash|zsh|fish",
		Description: "bash: source <(taskctl completion bash)\nzsh:  source <(taskctl completion zsh)\nfish: taskctl completion fish | source",
		Action: func(c *cli.Context) error {
			script, known := scripts[c.Args().First()]
			if !known || c.NArg() != 1 {
				return usageError("completion needs the name of a shell: bash, zsh or fish")
			}
			values, err := p.common(c)
			if err != nil {
				return err
			}
			p.printer(values).data("%s", script)
			return nil
		},
	}
}

// completeCommand answers the scripts.
func (p *program) completeCommand() *cli.Command {
	return &cli.Command{
		Name:            "__complete",
		Hidden:          true,
		SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if i := slices.Index(words, "kubectl"); i >= 0 && i < len(words)-1 {
				return p.completeKubectl(words[:i], words[i+1:])
			}
			for _, candidate := range p.candidates(c.App, words) {
				if _, err := p.env.Stdout.Write([]byte(candidate + "\n")); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// candidates are what could stand for the last one of the words.
func (p *program) candidates(app *cli.App, words []string) []string {
	if len(words) == 0 {
		return nil
	}
	current, before := words[len(words)-1], words[:len(words)-1]
	command, arguments, valueOf := parseWords(app, before)
	switch {
	case slices.Contains(before, "--"):
		return nil
	case valueOf != "":
		return p.values(valueOf)
	case strings.HasPrefix(current, "-"):
		return flagCandidates(app, command)
	case command == nil:
		return commandCandidates(app.Commands)
	case len(command.Subcommands) > 0:
		return commandCandidates(command.Subcommands)
	case command.Name == "completion" && arguments == 0:
		return []string{"bash\tbash's", "fish\tfish's", "zsh\tzsh's"}
	case command.Name == "logs" && arguments == 0:
		return componentCandidates()
	}
	return nil
}

// parseWords finds the command among the words before the current one, how
// many arguments it has so far, and the flag whose value the current word is.
func parseWords(app *cli.App, words []string) (command *cli.Command, arguments int, valueOf string) {
	known := app.Flags
	for len(words) > 0 {
		switch word := words[0]; {
		case isFlag(word):
			n := flagLength(known, append(words, ""))
			if n > len(words) {
				return command, arguments, strings.TrimLeft(word, "-")
			}
			words = words[n:]
			continue
		case command == nil || len(command.Subcommands) > 0:
			commands := app.Commands
			if command != nil {
				commands = command.Subcommands
			}
			if found := find(commands, word); found != nil {
				command, known = found, append(known[:len(known):len(known)], found.Flags...)
			}
		default:
			arguments++
		}
		words = words[1:]
	}
	return command, arguments, ""
}

func commandCandidates(commands []*cli.Command) []string {
	var candidates []string
	for _, command := range commands {
		if !command.Hidden {
			candidates = append(candidates, command.Name+"\t"+command.Usage)
		}
	}
	return candidates
}

func flagCandidates(app *cli.App, command *cli.Command) []string {
	flags := app.Flags
	if command != nil {
		flags = command.Flags
	}
	candidates := []string{"--help\tshow help"}
	for _, flag := range flags {
		if visible, ok := flag.(cli.VisibleFlag); ok && !visible.IsVisible() {
			continue
		}
		usage := ""
		if documented, ok := flag.(cli.DocGenerationFlag); ok {
			usage = strings.ReplaceAll(documented.GetUsage(), "`", "")
		}
		candidates = append(candidates, "--"+flag.Names()[0]+"\t"+usage)
	}
	return candidates
}
