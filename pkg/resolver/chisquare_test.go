package resolver

import (
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestChiSquare counts the first two draws of 10,000 nonces. Critical values are those of one false alarm in a
// thousand; the nonces are fixed, so that there is none.
func TestChiSquare(t *testing.T) {
	critical := []float64{0, 10.83, 13.82, 16.27, 18.47, 20.52, 22.46, 24.32, 26.12, 27.88, 29.59, 31.26, 32.91}
	for _, tc := range []struct {
		name    string
		tickets []Ticket
	}{
		{"two owners", tickets("a/1", "b/1")},
		{"one owner with three", tickets("a/1", "a/2", "a/3")},
		{"many and few", tickets("a/1", "b/1", "b/2", "b/3")},
		{"three owners", tickets("a/1", "a/2", "b/1", "b/2", "c/1")},
		{"seven owners", tickets("a/1", "b/1", "c/1", "d/1", "e/1", "f/1", "g/1")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := entries(tc.tickets)
			first, second, fromSecond := map[string]float64{}, map[string]float64{}, 0
			for n := range 10_000 {
				drawn := all(NewDraw(nonce(n), set))
				first[drawn[0]]++
				if drawn[0] == name(tc.tickets[0].Run) {
					second[drawn[1]]++
					fromSecond++
				}
			}
			if x := chiSquare(tc.tickets, first, 10_000); x > critical[len(tc.tickets)-1] {
				t.Errorf("first draws %v: chi-square %.2f", first, x)
			}
			if x := chiSquare(tc.tickets[1:], second, fromSecond); len(tc.tickets) > 2 && x > critical[len(tc.tickets)-2] {
				t.Errorf("second draws %v: chi-square %.2f", second, x)
			}
		})
	}
}

// chiSquare compares counts with what owner-uniform, then ticket-uniform draws give.
func chiSquare(tickets []Ticket, counts map[string]float64, n int) float64 {
	owned := map[rqv1.Owner]int{}
	for _, t := range tickets {
		owned[t.Owner]++
	}
	sum := 0.0
	for _, t := range tickets {
		want := float64(n) / float64(len(owned)*owned[t.Owner])
		got := counts[name(t.Run)]
		sum += (got - want) * (got - want) / want
	}
	return sum
}
