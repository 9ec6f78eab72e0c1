package payflow

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// question is offers under limits, classes that they pay for, and what is to be paid for.
type question struct {
	over   [][]int // by offer, the limits over it
	room   []int
	payers [][]int // by class
	demand []int
}

func drawQuestion(t *rapid.T) question {
	q := question{room: rapid.SliceOfN(rapid.IntRange(0, 3), 1, 4).Draw(t, "room")}
	for range rapid.IntRange(1, 4).Draw(t, "offers") {
		limit := rapid.IntRange(0, len(q.room)-1)
		q.over = append(q.over, rapid.SliceOfNDistinct(limit, 0, 3, rapid.ID[int]).Draw(t, "over"))
	}
	for range rapid.IntRange(1, 3).Draw(t, "classes") {
		pays := rapid.SliceOfNDistinct(rapid.IntRange(0, len(q.over)-1), 1, 4, rapid.ID[int]).Draw(t, "payers")
		slices.Sort(pays)
		q.payers = append(q.payers, pays)
		q.demand = append(q.demand, rapid.IntRange(0, 3).Draw(t, "demand"))
	}
	return q
}

// keeps reports whether every limit lets in what offers pay for.
func (q question) keeps(paid []int) bool {
	left := slices.Clone(q.room)
	for offer, n := range paid {
		if n > 0 && len(q.over[offer]) == 0 {
			return false
		}
		for _, l := range q.over[offer] {
			left[l] -= n
		}
	}
	return !slices.ContainsFunc(left, func(n int) bool { return n < 0 })
}

// best tries every way to pay for the demand of a class and those behind it, on top of what offers pay for already, and
// returns the best; nil when there is none.
func (q question) best(class, unpaid int, paid, best []int) []int {
	if !q.keeps(paid) {
		return best
	}
	if unpaid == 0 {
		if class+1 < len(q.demand) {
			return q.best(class+1, q.demand[class+1], paid, best)
		}
		if slices.Compare(paid, best) > 0 {
			return slices.Clone(paid)
		}
		return best
	}
	for _, offer := range q.payers[class] {
		paid[offer]++
		best = q.best(class, unpaid-1, paid, best)
		paid[offer]--
	}
	return best
}

// TestShareIsTheBestThereIs compares with a search of all ways to pay, also where limits cut across each other.
func TestShareIsTheBestThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuestion(t)
		p := New(len(q.room), q.over)
		want := q.best(0, q.demand[0], make([]int, len(q.over)), nil)
		for range 2 { // what is kept between calls changes nothing
			sent, found := p.Share(q.payers, q.demand, slices.Clone(q.room))
			if found != (want != nil) {
				t.Fatalf("found %v, the best is %v: %+v", found, want, q)
			}
			if !found {
				continue
			}
			paid := make([]int, len(q.over))
			for class := range sent {
				n := 0
				for offer, pods := range sent[class] {
					paid[offer] += pods
					n += pods
					if pods > 0 && !slices.Contains(q.payers[class], offer) {
						t.Fatalf("offer %d does not pay for class %d: %v", offer, class, sent)
					}
				}
				if n != q.demand[class] {
					t.Fatalf("class %d has %d pods, %d are paid for", class, q.demand[class], n)
				}
			}
			if diff := cmp.Diff(want, paid); diff != "" {
				t.Fatalf("paid by offer (-best +got):\n%s%+v", diff, q)
			}
		}
	})
}

// TestTotalIsTheMost has one class that all offers pay for, and raises its demand until it cannot be met.
func TestTotalIsTheMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuestion(t)
		q.payers, q.demand = [][]int{nil}, []int{0}
		for offer := range q.over {
			q.payers[0] = append(q.payers[0], offer)
		}
		got := New(len(q.room), q.over).Total(slices.Clone(q.room))
		most := 0
		for q.best(0, most+1, make([]int, len(q.over)), nil) != nil {
			most++
		}
		if got != most {
			t.Fatalf("total %d, the most is %d: %+v", got, most, q)
		}
	})
}
