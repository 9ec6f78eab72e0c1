package main

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is a line of go test -json.
type event struct {
	Action, Package string
	Test            string `json:",omitempty"`
	Output          string `json:",omitempty"`
}

func (e event) write(to io.Writer) error { return json.NewEncoder(to).Encode(e) }

// told is what the tests of a run said.
type told struct {
	// stretched is true if what the tests waited for was so slow that the run shows nothing by being green.
	stretched bool
	failures  []failure
}

// failure is a test that failed, or a package that failed although no test of it did.
type failure struct {
	// test is empty for a package.
	pkg, test string
	// lines are what the test said, without what go test itself says.
	lines []string
}

// stretched matches what a package's tests say at their end when they had to wait more than twice as long as usual.
var stretched = regexp.MustCompile(`patience was stretched \d+ times?, at most [0-9.]+×`)

// listen reads the output of go test -json.
func listen(from io.Reader) (*told, error) {
	all := &told{}
	type key struct{ pkg, test string }
	output := map[key][]string{}
	open, failed := map[key]bool{}, map[key]bool{}
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			break
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		k := key{e.Package, e.Test}
		switch e.Action {
		case "run":
			open[k] = true
		case "output":
			output[k] = append(output[k], e.Output)
			all.stretched = all.stretched || stretched.MatchString(e.Output)
		case "pass", "skip":
			delete(open, k)
			if e.Test != "" { // a package may fail yet
				delete(output, k)
			}
		case "fail":
			delete(open, k)
			failed[k] = true
		}
	}
	for k := range open { // it ran when the package's tests came to a sudden end
		failed[k] = true
	}
	parents := map[key]bool{}
	for k := range failed {
		if k.test == "" {
			continue
		}
		parents[key{k.pkg, ""}] = true
		for i, letter := range k.test {
			if letter == '/' {
				parents[key{k.pkg, k.test[:i]}] = true
			}
		}
	}
	for k := range maps.Keys(failed) {
		if !parents[k] {
			all.failures = append(all.failures, failure{pkg: k.pkg, test: k.test, lines: said(output[k])})
		}
	}
	slices.SortFunc(all.failures, func(a, b failure) int { return strings.Compare(a.name(), b.name()) })
	return all, nil
}

func (f failure) name() string {
	if f.test == "" {
		return f.pkg
	}
	return f.test
}

// theirs matches lines that are not a test's own.
var theirs = regexp.MustCompile(`^$|^(=== |--- )|^(PASS|FAIL)$`)

// said are the lines of a test's output that are its own.
func said(output []string) []string {
	var own []string
	for line := range strings.Lines(strings.Join(output, "")) {
		line = strings.TrimSpace(line)
		if !theirs.MatchString(line) {
			own = append(own, line)
		}
	}
	return own
}
