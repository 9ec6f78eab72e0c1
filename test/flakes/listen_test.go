package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestListen reads what go test -json wrote of tests that fail in each way that there is.
func TestListen(t *testing.T) {
	for name, want := range map[string]*told{
		"green": {},
		"slow":  {stretched: true},
		// A parent fails with its child, and is not told.
		"subtest": {failures: []failure{{pkg: "toy", test: "TestParent/child",
			lines: []string{"toy_test.go:12: before", "toy_test.go:13: want 2 pods, got 1", "and more of it"}}}},
		"panic": {failures: []failure{{pkg: "toy", test: "TestPanics",
			lines: []string{"panic: what [recovered, repanicked]"}}}},
		"package": {failures: []failure{{pkg: "toy", lines: []string{"audit: 1 Lease is open", "exit status 1"}}}},
	} {
		file, err := os.Open(filepath.Join("testdata", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := listen(file)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if name == "panic" && len(got.failures) > 0 { // goroutines follow
			got.failures[0].lines = got.failures[0].lines[:1]
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(told{}, failure{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestText has failures told of one test: alike, with another line at first, and with one later.
func TestText(t *testing.T) {
	runs := []*run{{Kind: alone, Seed: 1}, {Kind: busy, Seed: 2}, {Kind: busy, Seed: 3}}
	for name, test := range map[string]struct {
		lines [][]string
		want  string
	}{
		"alike but for figures": {
			lines: [][]string{{"a:3: 5 pods after 29s"}, {"a:3: 7 pods after 2s"}, {"a:3: 5 pods after 1s"}},
			want:  "  3× a:3: 5 pods after 29s\n",
		},
		"another at first": {
			lines: [][]string{{"late"}, {"no answer"}, {"no answer"}},
			want:  "  2× no answer\n  1× late\n",
		},
		"another later": {
			lines: [][]string{{"it is not so:", "late"}, {"it is not so:"}, {"it is not so:", "late"}},
			want:  "  3× it is not so:\n  2× late\n  1× (it says no more)\n",
		},
		"nothing said": {lines: [][]string{nil, nil, nil}, want: "  3× (it says no more)\n"},
	} {
		trouble := &trouble{pkg: "toy", test: "TestA", runs: runs, lines: test.lines}
		want := "TestA (toy)\n  failed in 3 of 40 runs: 1 alone (seed 1) 2 busy (seed 2, 3)\n" + test.want
		if diff := cmp.Diff(want, trouble.text(40)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
