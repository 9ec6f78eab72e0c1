package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
)

// mutant is a small change of the code that its tests are to notice.
type mutant struct {
	// ID is its number among all of one state of the code.
	ID int32 `json:"id"`
	// Package and File are paths below the checkout; Line is from 1.
	Package string `json:"package"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	// Function is what the code is in: F, T.F, (*T).F, or var x.
	Function string `json:"function"`
	// Operator is the kind of the change.
	Operator string `json:"operator"`
	// Text is what is changed, in one line, and Change what is made of it.
	Text   string `json:"text"`
	Change string `json:"change"`
	// Nth counts those of one function that are the same but for where they are, from 0.
	Nth int `json:"nth,omitempty"`
}

// key is the same in another state of the code, wherever the function is in it.
func (m *mutant) key() string {
	return fmt.Sprintf("%s %s: %s: %s: %s #%d", m.Package, m.Function, m.Operator, m.Text, m.Change, m.Nth)
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s:%d %s: %s: %s", m.File, m.Line, m.Function, m.Operator, m.Change)
}

// number gives each mutant its Nth and its ID. The mutants are in the order of the code.
func number(all []*mutant) {
	count := map[string]int{}
	for i, m := range all {
		m.ID = int32(i)
		key := m.key()
		m.Nth = count[key]
		count[key]++
	}
}

// sample draws n of all mutants, in the order of the draw. Which are drawn depends on the seed and on the mutants' keys
// alone, so that code that changes elsewhere leaves the draw nearly as it was, and a larger n adds to it.
func sample(all []*mutant, n int, seed uint64) []*mutant {
	lots := map[*mutant]string{}
	for _, m := range all {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, m.key()))
		lots[m] = string(sum[:])
	}
	drawn := slices.SortedFunc(slices.Values(all), func(a, b *mutant) int {
		return cmp.Or(cmp.Compare(lots[a], lots[b]), cmp.Compare(a.ID, b.ID))
	})
	return drawn[:min(n, len(drawn))]
}
