package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// table says what came of mutants: the survivors, and those that no test covers, with where they are.
func table(results []*result) string {
	var b strings.Builder
	by := map[string][]*result{}
	for _, r := range results {
		by[r.State] = append(by[r.State], r)
	}
	for _, state := range []string{survived, uncovered} {
		some := slices.SortedFunc(slices.Values(by[state]), func(a, b *result) int { return cmp.Compare(a.ID, b.ID) })
		if len(some) > 0 {
			fmt.Fprintf(&b, "%s:\n", state)
		}
		for _, r := range some {
			fmt.Fprintf(&b, "  %s%s\n", &r.mutant, r.notes())
		}
	}
	fmt.Fprintf(&b, "%d mutants: %d killed, %d survived, %d covered by no test\n", len(results), len(by[killed]),
		len(by[survived]), len(by[uncovered]))
	return b.String()
}

// notes say how much was tried on a survivor.
func (r *result) notes() string {
	var notes []string
	if r.Tests > 0 {
		notes = append(notes, fmt.Sprintf("%d tests", r.Tests-r.Left))
	}
	if r.Left > 0 {
		notes = append(notes, fmt.Sprintf("no time for %d more", r.Left))
	}
	if r.Real != "" {
		notes = append(notes, r.Real)
	}
	if len(notes) == 0 {
		return ""
	}
	return " (" + strings.Join(notes, ", ") + ")"
}

// again finds the mutants of other results that were killed there, and returns those that are in this code too, and
// what is not.
func again(all []*mutant, before []*result) (here []*mutant, gone []*result) {
	by := map[string]*mutant{}
	for _, m := range all {
		by[m.key()] = m
	}
	for _, r := range before {
		if r.State != killed {
			continue
		}
		if m := by[r.key()]; m != nil {
			here = append(here, m)
		} else {
			gone = append(gone, r)
		}
	}
	return here, gone
}

// comparison says which mutants were killed before and are not now, and of which the code is gone.
func comparison(before, now []*result, gone []*result) (text string, lost int) {
	var b strings.Builder
	by := map[string]*result{}
	for _, r := range before {
		by[r.key()] = r
	}
	for _, r := range now {
		if r.State == killed {
			continue
		}
		lost++
		fmt.Fprintf(&b, "killed before by %s, now %s: %s%s\n", by[r.key()].By, r.State, &r.mutant, r.notes())
	}
	for _, r := range gone {
		fmt.Fprintf(&b, "killed before, and the code is no more: %s\n", &r.mutant)
	}
	fmt.Fprintf(&b, "%d mutants that were killed before: %d are killed now, %d are not, of %d the code is no more\n",
		len(now)+len(gone), len(now)-lost, lost, len(gone))
	return b.String(), lost
}
