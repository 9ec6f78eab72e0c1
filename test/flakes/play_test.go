package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// toy is a package whose TestAtTimes fails each third time, since it counts its runs in a file.
const toy = `package toy

import (
	"fmt"
	"os"
	"testing"
)

func TestFine(t *testing.T) { t.Log("all is well") }

func TestAtTimes(t *testing.T) {
	data, _ := os.ReadFile("count")
	os.WriteFile("count", append(data, 'x'), 0o600)
	if len(data) == 3 {
		fmt.Println("patience was stretched 2 times, at most 2.3×")
	}
	t.Run("third", func(t *testing.T) {
		if len(data)%3 == 2 {
			t.Errorf("%d runs before", len(data))
		}
	})
}
`

// toyPlay is a play of the toy, in a module of its own that is the working directory.
func toyPlay(t *testing.T) *play {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module toy\n\ngo 1.26\n", "toy_test.go": toy} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	return &play{dir: filepath.Join(dir, "logs"), limit: time.Minute, tests: selection{Parallel: 4}}
}

// TestRunsAddUp has the toy run six times in two calls, and reads what is kept of it.
func TestRunsAddUp(t *testing.T) {
	p := toyPlay(t)
	if red, err := p.all(t.Context(), 1, []string{"."}); red || err != nil {
		t.Fatalf("two runs: red %v, %v", red, err)
	}
	again := &play{dir: p.dir, limit: p.limit, tests: selection{Parallel: 4}}
	red, err := again.all(t.Context(), 3, []string{"./..."})
	if !red || err != nil {
		t.Errorf("six runs, of which two fail: red %v, %v", red, err)
	}
	runs, err := load(p.dir, again.tests)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	seeds := map[int64]bool{}
	for _, r := range runs {
		got = append(got, r.Kind+" "+string(r.verdict()))
		seeds[r.Seed] = true
	}
	want := []string{"alone green", "busy green", "alone red", "busy slow machine", "alone green", "busy red"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if len(seeds) != 6 {
		t.Errorf("six runs have %d seeds", len(seeds))
	}
	if text := table(runs); !strings.Contains(text, "TestAtTimes/third (toy)\n  failed in 2 of 6 runs: 1 alone") ||
		!strings.Contains(text, "  2× toy_test.go:19: 2 runs before\n") {
		t.Errorf("the table is\n%s", text)
	}
}

// TestInterruptedRunDoesNotCount ends a run before it is over.
func TestInterruptedRunDoesNotCount(t *testing.T) {
	p := toyPlay(t)
	if err := p.build(t.Context(), []string{"."}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := p.once(ctx, busy, 1); err == nil {
		t.Errorf("an interrupted run counts as %s", r.verdict())
	}
	left, err := filepath.Glob(filepath.Join(p.dir, "*json*"))
	if temporary, _ := filepath.Glob(filepath.Join(p.dir, "now-*")); err != nil || len(left)+len(temporary) > 0 {
		t.Errorf("it leaves %v, %v: %v", left, temporary, err)
	}
}

// TestOnlyTheSameSelectionAddsUp looks for runs of other tests than those that are kept.
func TestOnlyTheSameSelectionAddsUp(t *testing.T) {
	p := toyPlay(t)
	if _, err := p.all(t.Context(), 1, []string{"."}); err != nil {
		t.Fatal(err)
	}
	for _, other := range []selection{{Packages: p.tests.Packages, Parallel: 4, Match: "TestFine"},
		{Packages: p.tests.Packages, Parallel: 2}, {Packages: []string{"other"}, Parallel: 4}} {
		if runs, err := load(p.dir, other); len(runs) > 0 || err != nil {
			t.Errorf("%+v has %d runs, %v", other, len(runs), err)
		}
	}
}

func TestNextKind(t *testing.T) {
	var had []*run
	var kinds []string
	for kind := next(had, 2); kind != ""; kind = next(had, 2) {
		kinds = append(kinds, kind)
		had = append(had, &run{Kind: kind})
	}
	if diff := cmp.Diff([]string{alone, busy, alone, busy}, kinds); diff != "" {
		t.Error(diff)
	}
}
