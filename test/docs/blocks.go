// Package docs tests that what the documentation shows is so: its objects are accepted by a real API server, its
// commands work, and they print what it says they print. The first line of a fenced block says what is done with it:
//
//	```yaml              an object: the API server has to accept it; scheduler configuration: the scheduler has to
//	```yaml file=NAME    the same, and later blocks find it in the file NAME
//	```yaml ... theirs   an object of a kind that this API server does not serve: it is only written to its file
//	```bash run          commands that have to succeed, run by bash
//	```console run       a session: each line after "$ " is run and has to print the lines that follow it
//	```bash run admin    the same, by an administrator, on a page that says who else runs its commands
//	```sh up             how to follow the file: that of `make up FLEET=FILE CONFIG=FILE JOBSET=1`
//
// Blocks of one file run in order against a control plane of their own, with the sample fleet unless the page says how
// to follow it with another. All others are only shown. Commands are an administrator's unless the page has a line
// <!-- run as NAME of GROUP, GROUP -->: then they are those of a person in these groups, who has a context for the
// namespace of each group's name.
package docs

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// block is a fenced block of a Markdown file.
type block struct {
	// line is the number of its first line of text, from 1.
	line     int
	language string
	// words follow the language.
	words []string
	text  string
}

// parse returns the fenced blocks of a file. It fails if the last one has no end.
func parse(markdown string) ([]block, error) {
	var blocks []block
	var open *block
	for number, line := range strings.Split(markdown, "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open != nil:
			blocks = append(blocks, *open)
			open = nil
		case fence:
			open = &block{line: number + 2}
			if words := strings.Fields(info); len(words) > 0 {
				open.language, open.words = words[0], words[1:]
			}
		case open != nil:
			open.text += line + "\n"
		}
	}
	if open != nil {
		return nil, fmt.Errorf("the block from line %d has no end", open.line)
	}
	return blocks, nil
}

// theirs reports whether the block is of kinds that the API server of tests does not serve.
func (b *block) theirs() bool { return slices.Contains(b.words, "theirs") }

// file is the name under which later blocks find this one; empty for none.
func (b *block) file() string {
	for _, word := range b.words {
		if name, ok := strings.CutPrefix(word, "file="); ok {
			return name
		}
	}
	return ""
}

func (b *block) runs() bool { return len(b.words) > 0 && b.words[0] == "run" }

// byAdmin is true of commands that need an administrator, whoever runs the others of the page.
func (b *block) byAdmin() bool { return b.runs() && len(b.words) > 1 && b.words[1] == "admin" }

// up matches the command that starts a control plane, with a fleet, a scheduler configuration and JobSets.
var up = regexp.MustCompile(`(?m)^make up(?: FLEET=(\S+))?(?: CONFIG=(\S+))?(?: JOBSET=(1))?$`)

// upWith is how a page says that the control plane is started.
type upWith struct {
	// fleet is a file of Nodes, and config one of a scheduler configuration; empty for what is installed.
	fleet, config string
	jobSets       bool
}

// upOf returns what the blocks are meant for: the sample fleet unless they say otherwise.
func upOf(blocks []block) upWith {
	for i := range blocks {
		if b := &blocks[i]; len(b.words) > 0 && b.words[0] == "up" {
			if found := up.FindStringSubmatch(b.text); found != nil {
				return upWith{cmp.Or(found[1], sampleFleet), found[2], found[3] != ""}
			}
		}
	}
	return upWith{fleet: sampleFleet}
}

const sampleFleet = "manifests/samples/fleet.yaml"

// runAs matches the line that says who runs the commands of a page.
var runAs = regexp.MustCompile(`(?m)^<!-- run as (\S+) of (\S+(?:, \S+)*) -->$`)

// person is who runs the commands of a page; nil for an administrator.
type person struct {
	name   string
	groups []string
}

func personOf(markdown string) *person {
	found := runAs.FindStringSubmatch(markdown)
	if found == nil {
		return nil
	}
	return &person{name: found[1], groups: strings.Split(found[2], ", ")}
}

// step is a command of a session, with the number of its line, and what it prints.
type step struct {
	line            int
	command, output string
}

// session takes a console block apart.
func (b *block) session() []step {
	var steps []step
	for i, line := range strings.Split(strings.TrimSuffix(b.text, "\n"), "\n") {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, step{line: b.line + i, command: command})
		} else if len(steps) > 0 {
			steps[len(steps)-1].output += line + "\n"
		}
	}
	return steps
}

// variable matches what differs from one time to the next: dates, times of day, ages and what was spent meanwhile.
var variable = regexp.MustCompile(`\b\d+\.\d+ ` +
	`GPU-hours\b|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\b\d\d:\d\d(:\d\d)?\b|\b\d+[smh]\d*s?\b`)

// canonical is an output without what differs from one time to the next, and without the widths of columns.
func canonical(output string) []string {
	var lines []string
	for line := range strings.Lines(output) {
		if words := strings.Fields(variable.ReplaceAllString(line, "TIME")); len(words) > 0 {
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return lines
}
