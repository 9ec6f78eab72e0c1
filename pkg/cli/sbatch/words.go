package sbatch

import (
	"fmt"
	"strings"
	"unicode"
)

// split cuts a directive into words as sbatch does: quotes hold words together, a backslash takes the meaning of what
// follows it, and # begins a comment.
func split(line int, text string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	begun, escaped := false, false
	flush := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for _, c := range text {
		switch {
		case escaped:
			word.WriteRune(c)
			escaped = false
		case c == '\\':
			begun, escaped = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			begun, quote = true, c
		case c == '#':
			flush()
			return words, nil
		case unicode.IsSpace(c):
			flush()
		default:
			begun = true
			word.WriteRune(c)
		}
	}
	if quote != 0 {
		return nil, &Error{Line: line, Of: marker + strings.TrimRight(text, "\n"), Text: fmt.Sprintf(
			"the quote %c has no end: close it", quote)}
	}
	flush()
	return words, nil
}

// next takes the first option off some words, or several where short ones stand together. If there is a problem, the
// last of the options has it.
func next(words []string) (options []Option, rest []string, problem string) {
	word, rest := words[0], words[1:]
	long, isLong := strings.CutPrefix(word, "--")
	switch {
	case isLong && long != "":
		return nextLong(long, rest)
	case len(word) > 1 && word[0] == '-' && !isLong:
		return nextShort(word[1:], rest)
	case word == "hetjob" || word == "packjob":
		return []Option{{Name: word}}, rest, "a job of several kinds of nodes is several Runs, which start apart: write a " +
			"script for each"
	}
	return []Option{{Name: word}}, rest, fmt.Sprintf("%q is not an option: write --NAME=VALUE, with quotes around a "+
		"value that contains spaces", word)
}

// nextLong reads --NAME, --NAME=VALUE, or --NAME VALUE.
func nextLong(text string, rest []string) ([]Option, []string, string) {
	name, value, valued := strings.Cut(text, "=")
	o := Option{Name: name, Value: value, valued: valued, about: byName(name)}
	if o.about != nil {
		o.Name = o.about.name
	}
	switch {
	case o.about == nil:
		if !valued && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") { // what follows is its value, if anything's
			o.Value, o.valued, rest = rest[0], true, rest[1:]
		}
	case o.about.takes == nothing && valued:
		return []Option{o}, rest, "this option has no value: write --" + o.Name
	case o.about.takes == always && !valued:
		return needed(nil, o, rest)
	}
	return []Option{o}, rest, ""
}

// nextShort reads -X, -XVALUE, -X VALUE, or several without values, as -Hk.
func nextShort(text string, rest []string) (options []Option, _ []string, problem string) {
	for i, c := range text {
		o := Option{Name: string(c), about: byShort(c)}
		after := text[i+len(string(c)):]
		if o.about == nil {
			return append(options, Option{Name: "-" + text[i:]}), rest, fmt.Sprintf("sbatch has no option -%c: leave it out", c)
		}
		o.Name = o.about.name
		switch {
		case o.about.takes == always && after != "":
			o.Value, o.valued = after, true
			return append(options, o), rest, ""
		case o.about.takes == always:
			return needed(options, o, rest)
		case o.about.takes == optional && strings.HasPrefix(after, "="):
			o.Value, o.valued = after[1:], true
			return append(options, o), rest, ""
		}
		options = append(options, o)
	}
	return options, rest, ""
}

// needed gives an option the next word as its value.
func needed(before []Option, o Option, rest []string) ([]Option, []string, string) {
	if len(rest) == 0 {
		return append(before, o), rest, "the value is missing: write --" + o.Name + "=VALUE"
	}
	o.Value, o.valued = rest[0], true
	return append(before, o), rest[1:], ""
}
