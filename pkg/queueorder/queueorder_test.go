package queueorder

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestARunTakesThePlaceOfALesserOne(t *testing.T) {
	for name, c := range map[string]struct {
		runs []Waiting
		want []int
	}{
		"nobody":                     {nil, []int{}},
		"one that asks for as many":  {[]Waiting{{0, false, 8}, {1, false, 8}}, []int{1, 0}},
		"one that asks for more":     {[]Waiting{{0, false, 16}, {1, false, 8}}, []int{1, 0}},
		"not one that asks for less": {[]Waiting{{0, false, 4}, {1, false, 8}}, []int{0, 1}},
		"not one of equal priority":  {[]Waiting{{1, false, 8}, {1, false, 8}}, []int{0, 1}},
		"not one of higher priority": {[]Waiting{{2, false, 8}, {1, false, 8}}, []int{0, 1}},
		"not one that keeps it":      {[]Waiting{{0, true, 8}, {1, false, 8}}, []int{0, 1}},
		"one that keeps its own":     {[]Waiting{{-1, false, 8}, {0, true, 8}}, []int{1, 0}},
		"the first that it may": {[]Waiting{{0, false, 4}, {0, false, 8}, {0, false, 9}, {1, false, 8}},
			[]int{0, 3, 2, 1}},
		"the highest chooses first":  {[]Waiting{{0, false, 8}, {1, false, 8}, {2, false, 8}}, []int{2, 1, 0}},
		"of one priority the oldest": {[]Waiting{{0, false, 8}, {1, false, 8}, {1, false, 8}}, []int{2, 0, 1}},
		"who gave way chooses in turn": {[]Waiting{{0, false, 4}, {1, false, 8}, {0, false, 8}, {2, false, 8}},
			[]int{0, 2, 3, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Places(c.runs)); diff != "" {
				t.Errorf("places by age (-want +got):\n%s", diff)
			}
		})
	}
}

// drawn is Runs of several owners by age, the owner that has priorities being 0.
func drawn(t *rapid.T) (owners []int, runs []Waiting) {
	n := rapid.IntRange(0, 24).Draw(t, "runs")
	for i := range n {
		owners = append(owners, rapid.IntRange(0, 2).Draw(t, fmt.Sprint("owner ", i)))
		runs = append(runs, Waiting{Priority: rapid.Int32Range(-1, 3).Draw(t, fmt.Sprint("priority ", i)),
			Keeps: rapid.IntRange(0, 7).Draw(t, fmt.Sprint("keeps ", i)) == 0,
			GPUs:  8 * rapid.IntRange(0, 4).Draw(t, fmt.Sprint("gpus ", i))})
	}
	return owners, runs
}

// line returns who stands where once the Runs of one owner have exchanged places, and that owner's, by age.
func line(owners []int, runs []Waiting) (at []int, mine []Waiting, places []int) {
	at = make([]int, len(runs))
	var ages []int
	for i := range runs {
		at[i] = i
		if owners[i] == 0 {
			ages, mine = append(ages, i), append(mine, runs[i])
		}
	}
	places = Places(mine)
	for i, place := range places {
		at[ages[place]] = ages[i]
	}
	return at, mine, places
}

// Before everybody of another owner, and at the end of any part of the line, no more GPUs are asked for than by age.
func TestNoOtherOwnerLosesByPriorities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		owners, runs := drawn(t)
		at, mine, places := line(owners, runs)
		sorted := slices.Clone(places)
		slices.Sort(sorted)
		for i, place := range sorted {
			if place != i {
				t.Fatalf("places %v are not those that there were", places)
			}
		}
		before, byAge := 0, 0
		for i, run := range at {
			if owners[i] != 0 && run != i {
				t.Fatalf("Run %d of another owner is at the place of %d", run, i)
			}
			if owners[i] == 0 && owners[run] != 0 {
				t.Fatalf("Run %d of another owner is at a place of the first", run)
			}
			if before > byAge {
				t.Fatalf("before place %d, %d GPUs are asked for, by age %d: %v", i, before, byAge, at)
			}
			before, byAge = before+runs[run].GPUs, byAge+runs[i].GPUs
		}
		for i, r := range mine {
			if r.Keeps && places[i] > i {
				t.Fatalf("Run %d keeps its place, and has %d", i, places[i])
			}
		}
	})
}

// When all have chosen nobody may choose again: whoever stands before a Run asks for less, or is not below it.
func TestPlacesAreFinal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, runs := drawn(t)
		places := Places(runs)
		again := make([]Waiting, len(runs))
		for i, place := range places {
			again[place] = runs[i]
		}
		for i, place := range Places(again) {
			if place != i {
				t.Fatalf("places %v of %v: the one at %d would move to %d", places, runs, i, place)
			}
		}
		level := slices.Clone(runs)
		for i := range level {
			level[i].Priority = 7
		}
		if !slices.IsSorted(Places(level)) {
			t.Fatal("Runs of one priority change places")
		}
	})
}

// A line of thousands is put in order in milliseconds.
func TestALongLineIsPutInOrderSoon(t *testing.T) {
	runs := make([]Waiting, 20_000)
	for i := range runs {
		runs[i] = Waiting{Priority: int32(i % 1000), GPUs: 8 * (i * 7 % 13)}
	}
	began := time.Now()
	Places(runs)
	if took := time.Since(began); took > time.Second {
		t.Errorf("20,000 Runs took %s", took)
	}
}
