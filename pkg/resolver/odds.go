package resolver

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	// walkSteps and walkAsks bound an exact answer: how many beginnings of a draw are walked, and how many questions the
	// World has been asked by then. All orders of six tickets have 1,957 beginnings, of no more than 64 sets, so they take
	// about a millisecond and 8 ms of questions of 20 µs; so do the first two draws of some 25 tickets. Each ticket more
	// would multiply that.
	walkSteps = 2000
	walkAsks  = 400
	// sampleSize is how many draws are tried otherwise. The sample ends earlier once the World has been asked sampleAsks
	// questions in all, so that a forecast stays quick: 16 ms when a question takes 20 µs.
	sampleSize = 400
	sampleAsks = 800
)

// Odds returns the conflict set for a Run that waits: what may be cut, with the probability that Resolve cuts it, in the
// order in which it is published, and how the probabilities were found, `exact` or `sampled 400, within 0.05 at 95 %`.
// It returns false if the Run would not start even when everything is cut, and an empty set when it starts without cuts.
//
// Spares, steps and reclaimed tenants that are cut in no way of drawing are left out; those of a sample are all listed.
// The tickets are listed whenever there is a lottery, since it cannot be run again without them. A ticket's GPUs are the
// rest of its Run, with the spares and steps that no entry lists.
func Odds(w World, tenants []Tenant) ([]rqv1.Conflict, string, bool) {
	t := newTrial(w, tenants)
	defer t.restore()
	if t.fits() {
		return nil, "exact", true
	}
	if !t.possible() {
		return nil, "", false
	}
	o := &odds{trial: t, weights: map[claim]*big.Rat{}, total: new(big.Rat)}
	structure := t.structure()
	if t.cut.add(structure...); t.fits() {
		t.cut = newSet(len(t.pieces))
		t.cutUntilFits(structure)
		t.takeBack(nil)
		o.count(big.NewRat(1, 1))
		return o.conflicts(false, false), "exact", true
	}
	o.all = newUrn(t.tickets())
	if o.exact() {
		return o.conflicts(true, false), "exact", true
	}
	o.weights, o.total = map[claim]*big.Rat{}, new(big.Rat)
	size := o.sample()
	return o.conflicts(true, true), fmt.Sprintf("sampled %d, within %s at 95 %%", size, margin(size)), true
}

// tickets are those that can be drawn, by owner, namespace and name.
func (t *trial) tickets() []Ticket {
	var tickets []Ticket
	for _, p := range t.pieces {
		if own := t.tenants[p.tenant]; p.action == rqv1.CutLottery {
			tickets = append(tickets, Ticket{Owner: own.Owner, Run: own.Run})
		}
	}
	return tickets
}

// odds sums up how likely each cut is.
type odds struct {
	*trial
	all     urn
	weights map[claim]*big.Rat
	total   *big.Rat
	steps   int // beginnings of draws that have been walked
}

// count notes an outcome.
func (o *odds) count(weight *big.Rat) {
	o.total.Add(o.total, weight)
	for _, c := range o.cuts() {
		sum := o.weights[claim{c.Run, c.Action}]
		if sum == nil {
			sum = new(big.Rat)
			o.weights[claim{c.Run, c.Action}] = sum
		}
		sum.Add(sum, weight)
	}
}

// finish takes back what is not needed once the Run fits, notes the outcome, and cuts it all again.
func (o *odds) finish(drawn []int, weight *big.Rat) {
	cut := slices.Clone(o.cut)
	o.takeBack(drawn)
	o.count(weight)
	o.cut = cut
}

// exact walks all ways to draw, and returns false when they are too many. One draw of the sample tells at once when there
// is no hope.
func (o *odds) exact() bool {
	structure := o.cut
	length, ways := o.cutUntilFits(o.sampled(0)), 1
	o.cut = structure
	for i := range length {
		if ways *= len(o.drawable) - i; ways > walkSteps {
			return false
		}
	}
	o.cut = slices.Clone(structure)
	done := o.walk(o.all, big.NewRat(1, 1), nil)
	o.cut = structure
	return done
}

// walk draws in every possible way from what is left in the urn; false when that takes too long.
func (o *odds) walk(left urn, weight *big.Rat, drawn []int) bool {
	if o.steps++; o.steps > walkSteps || o.asked > walkAsks {
		return false
	}
	for i := range left {
		each := new(big.Rat).Mul(weight, big.NewRat(1, int64(len(left)*len(left[i]))))
		for j, ticket := range left[i] {
			p := o.drawable[ticket.Run]
			drawn := append(drawn, p)
			o.cut.add(p)
			if o.fits() {
				o.steps++
				o.finish(drawn, each)
			} else if !o.walk(left.without(i, j), each, drawn) {
				return false
			}
			o.cut.remove(p)
		}
	}
	return true
}

// sample draws with public seeds, and returns how often.
func (o *odds) sample() int {
	one, structure := big.NewRat(1, 1), o.cut
	n := 0
	for ; n < sampleSize && (n == 0 || o.asked < sampleAsks); n++ {
		order := o.sampled(n)
		o.finish(order[:o.cutUntilFits(order)], one)
		o.cut = structure
	}
	return n
}

// sampled is the order in which the n-th draw of the sample takes the tickets.
func (o *odds) sampled(n int) []int {
	seed := publicSeed(o.all)
	draws, _ := o.draw(newDraw(sha256.Sum256(strconv.AppendInt(seed[:], int64(n), 10)), o.all))
	order := make([]int, len(draws))
	for i, ticket := range draws {
		order[i] = o.drawable[ticket.Run]
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

// conflicts lists the entries with their probabilities.
func (o *odds) conflicts(lottery, sampled bool) []rqv1.Conflict {
	var out []rqv1.Conflict
	for _, action := range actions {
		for i := range o.tenants {
			c := o.conflict(i, action, lottery, sampled)
			if c.GPUs > 0 {
				out = append(out, c)
			}
		}
	}
	return out
}

// conflict states one entry; it has no GPUs when there is no such entry.
func (o *odds) conflict(tenant int, action rqv1.CutAction, lottery, sampled bool) rqv1.Conflict {
	own := &o.tenants[tenant]
	c := rqv1.Conflict{Run: own.Run, Owner: own.Owner, Action: action, Probability: o.probability(own.Run, action)}
	listed := func(a rqv1.CutAction) bool { return sampled || o.weights[claim{own.Run, a}] != nil }
	ticket := action == rqv1.CutLottery && lottery && own.draws()
	if !ticket && (action == rqv1.CutLottery || !listed(action)) {
		return c
	}
	for _, p := range o.of[tenant] {
		piece := &o.pieces[p]
		if piece.action == action || ticket && !listed(piece.action) {
			c.GPUs += int32(piece.gpus)
		}
	}
	return c
}

// probability in at most four decimals.
func (o *odds) probability(run rqv1.NamespacedName, action rqv1.CutAction) string {
	sum := o.weights[claim{run, action}]
	if sum == nil {
		return "0"
	}
	return strings.TrimSuffix(strings.TrimRight(new(big.Rat).Quo(sum, o.total).FloatString(4), "0"), ".")
}
