package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// toy has a mutant of each kind, and pieces of code that have several, one in the other.
const toy = `package toy

import "time"

const fixed = 7

var limit = 3 * time.Second

type pair struct{ a, b int }

func note(*int) {}

func Between(x, low, high int) bool { return low <= x && x < high-1 }

func Make(n int) (p pair, err error) {
	note(&n)
	switch {
	case n == 0:
		return pair{}, nil
	case n > 2:
		n -= 2
	}
	for i := 0; i < n; i++ {
		p.a += i
	}
	return p, nil
}

func Open(x *int) bool {
	if x == nil || *x > fixed {
		return false
	}
	return true
}

func Nobody() int { return 5 }
`

const toyTest = `package toy

import "testing"

func TestBetween(t *testing.T) {
	for x, want := range []bool{false, true, true, false, false} {
		if Between(x, 1, 4) != want {
			t.Error(x)
		}
	}
}

func TestMake(t *testing.T) {
	if p, err := Make(4); p != (pair{a: 1}) || err != nil {
		t.Error(p, err)
	}
	if p, err := Make(0); p != (pair{}) || err != nil {
		t.Error(p, err)
	}
}

func TestOpen(t *testing.T) {
	if Open(nil) {
		t.Error("nothing is open")
	}
}

func TestBroken(t *testing.T) {
	Nobody()
	t.Fatal("always")
}
`

// toyState is the toy in a checkout of its own.
func toyState(t *testing.T) *state {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module toy\n\ngo 1.26\n", "pkg/toy/toy.go": toy,
		"pkg/toy/toy_test.go": toyTest} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	dir := filepath.Join(root, "logs", "now")
	s := &state{root: root, dir: dir, results: dir + ".json", jobs: 2, checks: 5, limit: time.Minute,
		patience: 2 * time.Second}
	if err := s.open(t.Context(), []string{"./pkg/..."}, []string{"./pkg/..."}); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestToy has all mutants of the toy tried, and looks at those that survive.
func TestToy(t *testing.T) {
	s := toyState(t)
	results, err := s.all(t.Context(), s.mutants)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range results {
		if r.State != killed {
			got = append(got, r.State+": "+strings.TrimPrefix(r.mutant.String(), "pkg/toy/toy.go:"))
		}
	}
	if diff := cmp.Diff(survivors, strings.Join(got, "\n")+"\n"); diff != "" {
		t.Errorf("what is not killed (-want +got):\n%s", diff)
	}
	if broken := s.broken(); broken != "fails without a mutant, and was left out: pkg/toy TestBroken\n" {
		t.Errorf("broken: %s", broken)
	}
	again := toyAgain(t, s)
	if len(again.done) != len(results) || len(again.tests) != 4 {
		t.Errorf("a second call knows %d results of %d, and %d tests", len(again.done), len(results), len(again.tests))
	}
}

// toyAgain is what a second call finds.
func toyAgain(t *testing.T, s *state) *state {
	t.Helper()
	again := &state{root: s.root, dir: filepath.Dir(s.dir), results: s.results, jobs: 1, checks: 5, limit: time.Minute}
	if err := again.open(t.Context(), []string{"./pkg/..."}, []string{"./pkg/..."}); err != nil {
		t.Fatal(err)
	}
	return again
}

const survivors = `survived: 7 var limit: constant: 3 becomes one more
survived: 16 Make: delete: (nothing)
survived: 18 Make: constant: 0 becomes one more
survived: 20 Make: boundary: n >= 2
survived: 20 Make: constant: 2 becomes one less
survived: 23 Make: constant: 0 becomes one more
survived: 30 Open: return early: return false
covered by no test: 30 Open: boundary: *x >= fixed
covered by no test: 33 Open: negate: !true
covered by no test: 36 Nobody: return zero: return 0
covered by no test: 36 Nobody: constant: 5 becomes one more
`

// TestApply looks at the text of the toy with all mutants in it.
func TestApply(t *testing.T) {
	s := toyState(t)
	text, err := os.ReadFile(filepath.Join(s.dir, "source", "pkg/toy/toy.go"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "toy.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("the toy with its mutants (-want +got):\n%s", diff)
	}
	if was, is := strings.Count(toy, "\n"), strings.Count(string(text), "\n"); was != is {
		t.Errorf("%d lines became %d", was, is)
	}
}

// TestAgain finds killed mutants in code that has moved.
func TestAgain(t *testing.T) {
	here := []*mutant{{Package: "p", Function: "F", Operator: "negate", Text: "a", Line: 7},
		{Package: "p", Function: "F", Operator: "negate", Text: "a", Line: 9},
		{Package: "p", Function: "F", Operator: "delete", Text: "f()", Line: 10}}
	number(here)
	before := []*result{
		{mutant: mutant{Package: "p", Function: "F", Operator: "negate", Text: "a", Nth: 1, Line: 3}, State: killed,
			By: "p TestA"},
		{mutant: mutant{Package: "p", Function: "F", Operator: "delete", Text: "f()", Line: 4}, State: survived},
		{mutant: mutant{Package: "p", Function: "G", File: "g.go", Operator: "negate", Change: "!a", Line: 5}, State: killed},
	}
	found, gone := again(here, before)
	if len(found) != 1 || found[0].Line != 9 || len(gone) != 1 || gone[0].Function != "G" {
		t.Fatalf("found %v, gone %v", found, gone)
	}
	text, lost := comparison(before, []*result{{mutant: *found[0], State: survived, Tests: 3}}, gone)
	want := "killed before by p TestA, now survived: :9 F: negate:  (3 tests)\n" +
		"killed before, and the code is no more: g.go:5 G: negate: !a\n" +
		"2 mutants that were killed before: 0 are killed now, 1 are not, of 1 the code is no more\n"
	if diff := cmp.Diff(want, text); diff != "" || lost != 1 {
		t.Errorf("lost %d (-want +got):\n%s", lost, diff)
	}
}

// TestSample draws the same again, more of it for a larger number, and others with another seed.
func TestSample(t *testing.T) {
	var all []*mutant
	for _, name := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		all = append(all, &mutant{Function: name})
	}
	number(all)
	names := func(drawn []*mutant) (s string) {
		for _, m := range drawn {
			s += m.Function
		}
		return s
	}
	few, many := names(sample(all, 5, 1)), names(sample(all, 10, 1))
	if !strings.HasPrefix(many, few) || few == names(sample(all, 5, 2)) || len(names(sample(all, 99, 1))) != 26 {
		t.Errorf("%s, %s", few, many)
	}
	if fewer := names(sample(all[:20], 26, 1)); strings.Map(func(r rune) rune {
		if r > 't' {
			return -1
		}
		return r
	}, names(sample(all, 26, 1))) != fewer {
		t.Errorf("the draw depends on what else there is: %s", fewer)
	}
}
