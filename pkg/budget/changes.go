package budget

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Change is something that would have more of a Run paid for: what to do, in words, and how many of the wanted GPUs
// would be paid for then.
type Change struct {
	What string
	GPUs int
}

// Owners who would lend: how many are asked, those with most GPUs left, and how many are told of.
const (
	lendersAsked = 8
	lendersTold  = 3
)

// advisor looks for what would have a Run paid for, or more of it.
type advisor struct {
	*Accounts
	ask    Ask
	cover  *Cover
	wanted int
	now    time.Time
}

// Changes returns what would have more paid for of some wanted GPUs, each change by itself, the best first. Each is
// tried before it is told; nothing is changed.
func (a *Accounts) Changes(ask Ask, wanted int, now time.Time) []Change {
	v := &advisor{Accounts: a, ask: ask, cover: a.Cover(ask, now), wanted: wanted, now: now}
	out := slices.Concat(v.borrowMore(), v.endSooner(), v.raise(), v.wait(), v.addSponsor())
	if len(out) == 0 {
		out = []Change{{fmt.Sprintf("ask an administrator for a Budget of %s with an envelope of flavor %s and "+
			"concurrency %d", ask.Owner, ask.Flavor, wanted), wanted}}
	}
	slices.SortStableFunc(out, func(x, y Change) int { return cmp.Compare(y.GPUs, x.GPUs) })
	return out
}

// borrowMore raises the Run's own maxBorrowGPUs (R5).
func (v *advisor) borrowMore() []Change {
	if v.ask.Funding == nil || v.ask.Funding.MaxBorrowGPUs == nil {
		return nil
	}
	free := *v.ask.Funding
	free.MaxBorrowGPUs = nil
	paid, lent := v.borrowing(free)
	if paid <= v.cover.Payable() {
		return nil
	}
	return []Change{{fmt.Sprintf("raise spec.funding.maxBorrowGPUs of the Run from %d to %d", *v.ask.Funding.MaxBorrowGPUs,
		lent), paid}}
}

// borrowing is how much would be paid for under another funding, and what sponsors would pay for in all.
func (v *advisor) borrowing(funding rqv1.RunFunding) (paid, lent int) {
	ask := v.ask
	ask.Funding = &funding
	cover := v.Cover(ask, v.now)
	lent = v.borrowed[ask.Run]
	for i, take := range cover.Takes(v.wanted / ask.GPUsPerPod) {
		paid += take.Pods * ask.GPUsPerPod
		if cover.Offers[i].Relation == rqv1.RelationSponsor {
			lent += take.Pods * ask.GPUsPerPod
		}
	}
	return paid, lent
}

// endSooner has the Run end sooner: before those need their GPUs that are kept for others, and while the GPU-hours last
// that are left. It is for the longest time, in whole minutes, for which as much is paid for as for the shortest.
func (v *advisor) endSooner() []Change {
	within := func(minutes int) *Cover {
		ask := v.ask
		ask.MaxDuration = time.Duration(minutes) * shortest
		return v.Cover(ask, v.now)
	}
	paid := func(c *Cover) int { return min(v.wanted, c.Payable()) }
	best := paid(within(1))
	if best <= v.cover.Payable() {
		return nil
	}
	most := horizon * time.Second
	if v.ask.MaxDuration > 0 {
		most = v.ask.MaxDuration
	}
	minutes := sort.Search(int(most/shortest), func(n int) bool { return paid(within(n+1)) < best })
	lasts := time.Duration(minutes) * shortest
	why := "the GPU-hours that are left are enough"
	if o := v.cover.neededIn(lasts, shortest, v.now); o != nil && o.Dateless() {
		why = fmt.Sprintf("the Run holds up Run %s for no longer than that", o.Run)
	} else if o != nil {
		why = fmt.Sprintf("the Run ends before Run %s starts at %s", o.Run, o.At.UTC().Format(time.RFC3339))
	} else if best < v.wanted {
		return nil
	}
	return []Change{{fmt.Sprintf("set spec.runtime.maxDuration to %s or less, so that %s", inMinutes(lasts), why), best}}
}

// neededIn returns what is kept for the first who is to have it in some time, or most longer; nil where nothing is.
func (c *Cover) neededIn(in, most time.Duration, now time.Time) (first *Owed) {
	if c.ask.Owed == nil {
		return nil
	}
	from := now.Add(in)
	for i := range c.Offers {
		for _, o := range c.ask.Owed(c.Offers[i].Key) {
			at := o.by(now)
			if !at.Before(from) && at.Before(from.Add(most)) && (first == nil || CompareOwed(o, *first) < 0) {
				first = &o
			}
		}
	}
	return first
}

// inMinutes writes a duration as people do.
func inMinutes(d time.Duration) string {
	text := strings.TrimSuffix(d.String(), "0s")
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// wait waits for a window to open.
func (v *advisor) wait() []Change {
	var opens []time.Time
	for i := range v.cover.Offers {
		if at := v.cover.Offers[i].Opens; !at.IsZero() {
			opens = append(opens, at)
		}
	}
	slices.SortFunc(opens, time.Time.Compare)
	for _, at := range slices.CompactFunc(opens, time.Time.Equal) {
		if v.Cover(v.ask, at).Payable() >= v.wanted {
			return []Change{{"wait until " + at.UTC().Format(time.RFC3339) + ", when a window opens", v.wanted}}
		}
	}
	return nil
}

// addSponsor tries owners outside the family who lend to the Run's owner and have most GPUs left.
func (v *advisor) addSponsor() []Change {
	var funding rqv1.RunFunding
	if v.ask.Funding != nil {
		funding = *v.ask.Funding
	}
	without := rqv1.RunFunding{AllowBorrow: true, Sponsors: funding.Sponsors} // as much as they lend
	before, _ := v.borrowing(without)
	var out []Change
	able := slices.DeleteFunc(v.lenders(v.ask.Owner, v.ask.Flavor), func(o rqv1.Owner) bool {
		return slices.Contains(funding.Sponsors, o)
	})
	for _, owner := range able[:min(len(able), lendersAsked)] {
		more := without
		more.Sponsors = append(slices.Clone(funding.Sponsors), owner)
		paid, lent := v.borrowing(more)
		if paid <= max(before, v.cover.Payable()) {
			continue
		}
		what := fmt.Sprintf("add %s to spec.funding.sponsors of the Run: it would lend %d GPUs", owner, paid-before)
		if !funding.AllowBorrow {
			what = fmt.Sprintf("set spec.funding.allowBorrow of the Run to true and add %s to spec.funding.sponsors: it "+
				"would lend "+
				"%d GPUs", owner, paid-before)
		}
		if most := funding.MaxBorrowGPUs; most != nil && lent > int(*most) {
			what += fmt.Sprintf(", if maxBorrowGPUs is raised to %d", lent)
		}
		out = append(out, Change{what, paid})
	}
	slices.SortStableFunc(out, func(x, y Change) int { return cmp.Compare(y.GPUs, x.GPUs) })
	return out[:min(len(out), lendersTold)]
}
