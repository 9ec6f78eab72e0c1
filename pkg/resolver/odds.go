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
	// exactTickets is the most tickets for which all ways to draw are walked. Six have 720 orders, with 1,957 beginnings,
	// of 64 sets: about a millisecond, and a World has few questions to answer. Eight would have 109,601 beginnings.
	exactTickets = 6
	// sampleSize is how many draws are tried beyond that, and sampleAsks after how many questions to the World the sample
	// ends early, so that a forecast stays quick: 16 ms when a question takes 20 µs.
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
	if t.cutStructure() {
		t.takeBack(nil)
		o.count(big.NewRat(1, 1))
		return o.conflicts(false, false), "exact", true
	}
	tickets := t.tickets()
	if len(tickets) <= exactTickets {
		o.walk(newUrn(tickets), big.NewRat(1, 1), nil)
		return o.conflicts(true, false), "exact", true
	}
	size := o.sample(tickets)
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
	weights map[claim]*big.Rat
	total   *big.Rat
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

// walk draws in every possible way from what is left in the urn.
func (o *odds) walk(left urn, weight *big.Rat, drawn []int) {
	for i := range left {
		each := new(big.Rat).Mul(weight, big.NewRat(1, int64(len(left)*len(left[i]))))
		for j, ticket := range left[i] {
			p := o.drawable[ticket.Run]
			drawn := append(drawn, p)
			o.cut.add(p)
			if o.fits() {
				o.finish(drawn, each)
			} else {
				o.walk(left.without(i, j), each, drawn)
			}
			o.cut.remove(p)
		}
	}
}

// sample draws with seeds that follow from the tickets, and returns how often.
func (o *odds) sample(tickets []Ticket) int {
	all, one := newUrn(tickets), big.NewRat(1, 1)
	public := publicSeed(all)
	structure := slices.Clone(o.cut)
	budget := o.asked + sampleAsks
	n := 0
	for ; n < sampleSize && (n == 0 || o.asked < budget); n++ {
		d := newDraw(sha256.Sum256(strconv.AppendInt(slices.Clone(public[:]), int64(n), 10)), all)
		var drawn []int
		for {
			ticket, ok := d.Next()
			if !ok {
				break
			}
			p := o.drawable[ticket.Run]
			drawn = append(drawn, p)
			o.cut.add(p)
			if o.fits() {
				break
			}
		}
		o.finish(drawn, one)
		o.cut = slices.Clone(structure)
	}
	return n
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
