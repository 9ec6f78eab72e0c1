// Package sbatch reads batch scripts as Slurm's sbatch does, and says which Run does the same. It is pure: a script
// goes in, a Run and what could not be said in it come out.
package sbatch

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Script is a batch script, taken apart.
type Script struct {
	// Command starts the interpreter with the body as the argument that comes next.
	Command []string
	// Options are what the directives before the first command say, in their order.
	Options []Option
	// Late are the lines with directives that Slurm does not read, since a command comes before them.
	Late []int
	// Others are the lines with directives of other batch systems, which Slurm reads some of and a Run nothing.
	Others []Option
	// Body is the script from its first command on; FirstLine is the number of the line that it begins with.
	Body      string
	FirstLine int
}

// Option is an option of sbatch that a directive gives.
type Option struct {
	Line int
	// Name is the long name, whichever was written; that which was written where sbatch has no such option.
	Name  string
	Value string
	// about is what is known of the option; nil for one that sbatch does not have.
	about *about
	// valued is true where a value is given, be it an empty one.
	valued bool
}

// String is the option as it can be written in a script.
func (o Option) String() string {
	if o.valued {
		return "--" + o.Name + "=" + o.Value
	}
	return "--" + o.Name
}

// Error is what is wrong with a script, or with what was asked besides it, and what mends it.
type Error struct {
	// Line is 0 where it is no line that is at fault.
	Line int
	// Of is the directive or flag at fault; empty where it is the script.
	Of   string
	Text string
}

// Error names the line, the directive and the fix.
func (e *Error) Error() string { return told(e.Line, e.Of, e.Text) }

// told puts a line and a directive before what is said about them.
func told(line int, of, text string) string {
	if of != "" {
		text = of + ": " + text
	}
	if line > 0 {
		text = fmt.Sprintf("line %d: %s", line, text)
	}
	return text
}

// refuse returns an error about an option.
func refuse(o *Option, format string, args ...any) *Error {
	return &Error{Line: o.Line, Of: o.String(), Text: fmt.Sprintf(format, args...)}
}

// marker begins a directive.
const marker = "#SBATCH"

// others begin directives of PBS and of LSF.
var others = []string{"#PBS", "#BSUB"}

// longestArgument is the most that Linux takes in one argument, its final zero included.
const longestArgument = 128 * 1024

// Parse takes a script apart. Its error is an *Error.
func Parse(text string) (*Script, error) {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if err := wellFormed(line); err != "" {
			return nil, &Error{Line: i + 1, Text: err}
		}
	}
	s := &Script{}
	var err error
	if s.Command, err = interpreter(strings.TrimSuffix(lines[0], "\n")); err != nil {
		return nil, err
	}
	first := len(lines)
	for i, line := range lines {
		if words := strings.TrimSpace(line); words != "" && !strings.HasPrefix(words, "#") {
			first = i
			break
		}
		if rest, found := strings.CutPrefix(line, marker); found {
			if err := s.read(i+1, rest); err != nil {
				return nil, err
			}
		}
		for _, other := range others {
			if strings.HasPrefix(line, other+" ") {
				s.Others = append(s.Others, Option{Line: i + 1, Name: other})
			}
		}
	}
	s.Body, s.FirstLine = strings.Join(lines[first:], ""), first+1
	for i, line := range lines[first:] {
		if strings.HasPrefix(line, marker) {
			s.Late = append(s.Late, first+1+i)
		}
	}
	if len(s.Body) >= longestArgument {
		return nil, &Error{Line: s.FirstLine, Text: fmt.Sprintf("the script has %d bytes from here on, and a container's "+
			"command may have %d: put it into the image, and call it from the script", len(s.Body), longestArgument-1)}
	}
	return s, nil
}

// wellFormed says what is wrong with a line for being one of a script; empty where nothing is.
func wellFormed(line string) string {
	switch {
	case strings.Contains(line, "\r\n"):
		return "the line ends as in DOS, which Slurm refuses: convert the script with dos2unix"
	case strings.ContainsRune(line, 0):
		return "there is a zero byte, which Slurm refuses: give the script, not a program"
	case !utf8.ValidString(line):
		return "this is no UTF-8 text, which a Run is made of: convert the script with iconv"
	case strings.ContainsFunc(line, noText):
		return "there is a control character, which a YAML file cannot hold: write it as the shell does, such as $'\\x1b'"
	}
	return ""
}

// noText is true of characters that YAML does not take as they are.
func noText(c rune) bool {
	return unicode.IsControl(c) && c != '\t' && c != '\n' || c == 0xFFFE || c == 0xFFFF
}

// interpreter returns the command that runs a text, by the first line of a script.
func interpreter(line string) ([]string, error) {
	rest, found := strings.CutPrefix(line, "#!")
	words := strings.Fields(rest)
	if !found || len(words) == 0 {
		return nil, &Error{Line: 1, Text: "a batch script begins with the program that runs it: write #!/bin/bash first"}
	}
	if path.Base(words[0]) == "env" {
		words = slices.DeleteFunc(words[1:], func(word string) bool { return word == "-S" })
	}
	if last := len(words) - 1; last > 0 && (words[last] == "-" || words[last] == "--") {
		words = words[:last] // it ends the options, and one more follows
	}
	program := ""
	if len(words) > 0 {
		program = path.Base(words[0])
		words[0] = program
	}
	switch {
	case slices.Contains([]string{"bash", "sh", "dash", "ksh", "zsh"}, program), strings.HasPrefix(program, "python"):
		return append(words, "-c"), nil
	case program == "perl", program == "ruby":
		return append(words, "-e"), nil
	}
	return nil, &Error{Line: 1, Of: line, Text: "a script can be given to bash, sh, dash, ksh, zsh, python, perl and " +
		"ruby alone: put this one into the image, and call it from one that begins with #!/bin/bash"}
}

// read takes a directive's text apart.
func (s *Script) read(line int, text string) error {
	words, err := split(line, text)
	if err != nil {
		return err
	}
	for len(words) > 0 {
		var options []Option
		var problem string
		options, words, problem = next(words)
		if problem != "" {
			return &Error{Line: line, Of: options[len(options)-1].String(), Text: problem}
		}
		for _, o := range options {
			o.Line = line
			s.Options = append(s.Options, o)
		}
	}
	return nil
}
