package resolver

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

const (
	// walkSteps and walkAsks bound an exact answer: how many beginnings of a draw are walked, and how many questions the
	// fleet has been asked by then. All orders of six tickets have 1,957 beginnings, of no more than 64 sets, so they take
	// about a millisecond and 8 ms of questions of 20 µs; so do the first two draws of some 25 tickets. Each ticket more
	// would multiply that.
	walkSteps = 2000
	walkAsks  = 400
	// sampleSize is how many draws are tried otherwise. The sample ends earlier once feasibility has been asked sampleAsks
	// questions in all, so that a forecast stays quick: 16 ms when a question takes 20 µs.
	sampleSize = 400
	sampleAsks = 800
)

// finish takes back what is not needed once the Run fits, notes the outcome, and cuts it all again.
func (o *odds) finish(drawn []int, weight *big.Rat) {
	cut := o.trial.chosen
	o.trial.chosen = slices.Clone(cut)
	o.trial.putBackUnneeded(drawn)
	o.note(weight)
	o.trial.chosen = cut
}

// exact walks all ways to draw, and returns false when they are too many. One draw of the sample tells at once when
// there is no hope.
func (o *odds) exact() bool {
	structure := o.trial.chosen
	length, ways := o.trial.cutUntilFits(o.sampled(0)), 1
	o.trial.chosen = structure
	for i := range length {
		ways *= len(o.trial.unitOf) - i
		if ways > walkSteps {
			return false
		}
	}
	o.trial.chosen = slices.Clone(structure)
	done := o.walk(o.all, big.NewRat(1, 1), nil)
	o.trial.chosen = structure
	return done
}

// walk draws in every possible way from what is left in the urn; false when that takes too long.
func (o *odds) walk(left urn, weight *big.Rat, drawn []int) bool {
	o.steps++
	if o.steps > walkSteps || o.trial.asks > walkAsks {
		return false
	}
	for i := range left {
		each := new(big.Rat).Mul(weight, big.NewRat(1, int64(len(left)*len(left[i]))))
		for j, ticket := range left[i] {
			p := o.trial.unitOf[ticket.Run]
			drawn := append(drawn, p)
			o.trial.chosen.add(p)
			if o.trial.fits() {
				o.steps++
				o.finish(drawn, each)
			} else if !o.walk(left.without(i, j), each, drawn) {
				return false
			}
			o.trial.chosen.remove(p)
		}
	}
	return true
}

// sample draws with public seeds, and returns how often.
func (o *odds) sample() int {
	one, structure := big.NewRat(1, 1), o.trial.chosen
	n := 0
	for ; n < sampleSize && (n == 0 || o.trial.asks < sampleAsks); n++ {
		order := o.sampled(n)
		o.finish(order[:o.trial.cutUntilFits(order)], one)
		o.trial.chosen = structure
	}
	return n
}

// sampled is the order in which the n-th draw of the sample takes the tickets.
func (o *odds) sampled(n int) []int {
	seed := publicSeed(o.all)
	draws, _ := o.trial.drawAll(newDraw(sha256.Sum256(strconv.AppendInt(seed[:], int64(n), 10)), o.all))
	order := make([]int, len(draws))
	for i, ticket := range draws {
		order[i] = o.trial.unitOf[ticket.Run]
	}
	return order
}

// publicSeed is the SHA-256 of the tickets, a line for each.
func publicSeed(all urn) [32]byte {
	var text strings.Builder
	for _, tickets := range all {
		for _, t := range tickets {
			fmt.Fprintf(&text, "%s %s/%s\n", strings.ToLower(string(t.Owner)), t.Run.Namespace, t.Run.Name)
		}
	}
	return sha256.Sum256([]byte(text.String()))
}

// margin is the half-width of the 95 % confidence interval of a sampled probability of one half, the widest there is,
// rounded up.
func margin(size int) string {
	return strconv.FormatFloat(math.Min(1, math.Ceil(98/math.Sqrt(float64(size)))/100), 'f', -1, 64)
}
