package picture

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Named returns the bars whose name or lane contains some words, in any case; all of them without words.
func Named(bars []Bar, words string) []Bar {
	words = strings.ToLower(words)
	return slices.DeleteFunc(slices.Clone(bars), func(b Bar) bool {
		return !strings.Contains(strings.ToLower(b.Name+" "+b.Lane), words)
	})
}

// Most returns as many bars as are asked for, in their order, and how many are left out. What is going to be comes
// before what was held and what is, and of these come first those that take most room of a span of time.
func Most(bars []Bar, most int, from, to, now time.Time) (kept []Bar, leftOut int) {
	if len(bars) <= most {
		return bars, 0
	}
	order := make([]int, len(bars))
	shown := make([]time.Duration, len(bars))
	for i := range bars {
		order[i] = i
		shown[i] = bars[i].shown(from, to, now)
	}
	held := func(i int) int {
		if bars[i].Kind == Held {
			return 1
		}
		return 0
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(held(i), held(j)), cmp.Compare(shown[j], shown[i]), cmp.Compare(i, j))
	})
	order = order[:most]
	slices.Sort(order)
	for _, i := range order {
		kept = append(kept, bars[i])
	}
	return kept, len(bars) - most
}

// shown is how much of a span of time a bar takes.
func (b *Bar) shown(from, to, now time.Time) time.Duration {
	begin, end := b.From, to
	if begin.Before(from) {
		begin = from
	}
	if b.To != nil && b.To.Before(end) {
		end = *b.To
	} else if b.To == nil && b.Kind == Held && now.Before(end) {
		end = now
	}
	return end.Sub(begin)
}
