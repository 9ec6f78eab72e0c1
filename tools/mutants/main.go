// Mutants makes small changes of the code, one at a time, and looks whether a test notices. All changes are compiled in
// at once, and an environment variable chooses the one that is made, so that each test binary is built only once. What
// is known of one state of the code is kept: a second call goes on.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// The kernel ends a child with the thread that started it: the main thread lasts.
func init() { runtime.LockOSThread() }

func main() {
	s := &state{}
	n := flag.Int("n", 150, "mutants that are drawn")
	seed := flag.Uint64("seed", 1, "decides which are drawn")
	packages := flag.String("packages", "./pkg/...", "the packages that are changed")
	tests := flag.String("tests", "./pkg/... ./cmd/...", "the packages whose tests are to notice")
	name := flag.String("state", "", "what names the state of the code")
	logs := flag.String("logs", "logs/mutants", "the directory of results, below the checkout")
	before := flag.String("before", "", "results of another state: those that were killed there are tried, none is drawn")
	real := &realTests{s: s}
	flag.BoolVar(&real.wanted, "real", false, "have what survives tried by scenarios on a real control plane too")
	flag.StringVar(&real.match, "run", "", "a regular expression: only such scenarios")
	flag.DurationVar(&real.limit, "real-limit", 5*time.Minute, "the longest that the scenarios of a mutant may take")
	flag.StringVar(&real.ldflags, "ldflags", "", "how the scheduler is linked")
	flag.IntVar(&s.checks, "checks", 20, "cases that a property test draws")
	flag.IntVar(&s.jobs, "jobs", runtime.NumCPU(), "mutants that are tried at once")
	flag.DurationVar(&s.limit, "limit", 4*time.Minute, "the longest that the tests of a mutant may take")
	flag.DurationVar(&s.patience, "patience", 20*time.Second, "what tests may take beyond five times what they usually do")
	flag.Parse()
	if *name == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	lost, err := func() (int, error) {
		var err error
		if s.root, err = checkout(); err != nil {
			return 0, err
		}
		s.dir = filepath.Join(s.root, *logs, *name)
		s.results = s.dir + ".json"
		if err := s.open(ctx, strings.Fields(*packages), strings.Fields(*tests)); err != nil {
			return 0, err
		}
		if *before != "" {
			return s.compare(ctx, real, *before)
		}
		fmt.Printf("%d mutants of %d, drawn with seed %d; results are in %s\n", *n, len(s.mutants), *seed, s.results)
		results, err := s.judge(ctx, real, sample(s.mutants, *n, *seed))
		fmt.Print(table(results), s.broken())
		return 0, err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || lost > 0 {
		os.Exit(1)
	}
}

// judge tries mutants, on a real control plane too if that is wanted.
func (s *state) judge(ctx context.Context, real *realTests, mutants []*mutant) ([]*result, error) {
	results, err := s.all(ctx, mutants)
	if err != nil || !real.wanted {
		return results, err
	}
	err = real.all(ctx, results)
	return s.known(mutants), err
}

// compare tries what was killed in another state of the code, and tells what survives now.
func (s *state) compare(ctx context.Context, real *realTests, path string) (lost int, err error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.root, path)
	}
	if _, err := os.Stat(path); err != nil {
		return 0, err
	}
	var then []*result
	if err := readJSON(path, &then); err != nil {
		return 0, err
	}
	here, gone := again(s.mutants, then)
	fmt.Printf("%d mutants that were killed in %s; of %d more the code is no more\n", len(here), path, len(gone))
	now, err := s.judge(ctx, real, here)
	text, lost := comparison(then, now, gone)
	fmt.Print(text, s.broken())
	return lost, err
}

// broken names the tests that fail without a mutant, and therefore show nothing.
func (s *state) broken() string {
	var b strings.Builder
	for _, t := range s.tests {
		if t.Broken {
			fmt.Fprintf(&b, "fails without a mutant, and was left out: %s %s\n", t.Package, t.Name)
		}
	}
	return b.String()
}
