package cli

import (
	"regexp"
	"strings"
)

var (
	unknownFlag = regexp.MustCompile(`^flag provided but not defined: -(.+)$`)
	flagName    = regexp.MustCompile(`\bflag -([A-Za-z0-9-]+)|needs an argument: -([A-Za-z0-9-]+)`)
)

// flagError says what package flag found wrong in the words, and with the
// dashes, that people know.
func flagError(err error) string {
	text := err.Error()
	if unknown := unknownFlag.FindStringSubmatch(text); unknown != nil {
		return "there is no flag " + dashed(unknown[1])
	}
	text = flagName.ReplaceAllStringFunc(text, func(found string) string {
		before, name, _ := strings.Cut(found, "-")
		return before + dashed(name)
	})
	return strings.TrimSuffix(text, ": parse error")
}

// dashed is a flag as it is usually written.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
