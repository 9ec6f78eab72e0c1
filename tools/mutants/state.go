package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"
)

// state is one state of the code, with its mutants and what is known of them.
type state struct {
	// root is the checkout, dir where binaries and maps are, results the path of the results.
	root, dir, results string
	// overlay tells the compiler of the files that have the mutants in them.
	overlay string
	module  string
	// checks is how many cases a property test draws; jobs how many mutants are tried at once; limit the longest that
	// the tests of a mutant may take, and patience what some of them may take beyond five times what they usually do.
	checks, jobs    int
	limit, patience time.Duration
	mutants         []*mutant
	units           []*binary
	tests           []*test

	mutex sync.Mutex
	done  map[string]*result // by key
}

// open finds the mutants of packages, has the binaries built that have them inside, and reads what is known.
func (s *state) open(ctx context.Context, packages, tests []string) error {
	module, sources, err := read(s.root, packages)
	if err != nil {
		return err
	}
	s.module = module
	edits := map[*source][]edit{}
	for _, source := range sources {
		found, changes := find(source)
		s.mutants, edits[source] = append(s.mutants, found...), changes
	}
	number(s.mutants)
	s.dir = filepath.Join(s.dir, signature(s.mutants, tests))
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if s.overlay, err = overlay(s.root, s.dir, module, sources, edits); err != nil {
		return err
	}
	var results []*result
	if err := readJSON(s.results, &results); err != nil {
		return err
	}
	s.done = map[string]*result{}
	for _, r := range results {
		s.done[r.key()] = r
	}
	if err := readJSON(s.reachPath(), &s.tests); err != nil {
		return err
	}
	s.units, err = s.binaries(ctx, tests)
	return err
}

// signature names a set of mutants and of tests: what is compiled and known of others is of no use.
func signature(all []*mutant, tests []string) string {
	sum := sha256.New()
	fmt.Fprintln(sum, tests)
	for _, m := range all {
		fmt.Fprintln(sum, m.key())
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:4])
}

// all tries mutants that nothing is known of yet, and returns what came of all of them.
func (s *state) all(ctx context.Context, mutants []*mutant) ([]*result, error) {
	for _, b := range s.units {
		if err := s.reach(ctx, b); err != nil {
			return nil, err
		}
	}
	todo := make(chan *mutant)
	failed := make(chan error, s.jobs)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for range s.jobs {
		go func() {
			runtime.LockOSThread() // a test ends with the thread that started it
			for m := range todo {
				r, err := s.try(ctx, m)
				if err == nil {
					err = s.keep(r)
				}
				if err != nil {
					cancel(err)
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	for _, m := range mutants {
		if len(s.known([]*mutant{m})) > 0 {
			continue
		}
		select {
		case todo <- m:
		case <-ctx.Done():
		}
	}
	close(todo)
	var first error
	for range s.jobs {
		first = cmp.Or(first, <-failed)
	}
	return s.known(mutants), first
}

// known is what is known of mutants, in their order.
func (s *state) known(mutants []*mutant) (out []*result) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, m := range mutants {
		if r := s.done[m.key()]; r != nil {
			out = append(out, r)
		}
	}
	return out
}

// keep writes a result down with all others.
func (s *state) keep(r *result) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.done[r.key()] = r
	fmt.Printf("%s  %d: %s after %.1fs: %s\n", time.Now().Format(time.TimeOnly), len(s.done), r.State, r.Seconds,
		&r.mutant)
	var all []*result
	for _, r := range s.done {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *result) int { return cmp.Compare(a.ID, b.ID) })
	return writeJSON(s.results, all)
}

// checkout is the directory of go.mod of the code whose mutants are tried: the one above this module's.
func checkout() (string, error) { return filepath.Abs(filepath.Join("..", "..")) }
