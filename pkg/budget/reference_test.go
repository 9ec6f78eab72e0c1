package budget

import (
	"cmp"
	"slices"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// reference decides who pays by trying everything: slow, and straight from the rules. Its families are simple: what
// every owner is to the asker is given.
type reference struct {
	budgets   []*rqv1.Budget
	charges   []Charge // open ones
	ask       Ask
	relations map[rqv1.Owner]rqv1.Relation // of the family; sponsors are not in it
	now       time.Time
}

// candidate is an envelope that may pay, with the limits over it.
type candidate struct {
	key      Key
	relation rqv1.Relation
	selector map[string]string
	limits   []*bound
}

// bound is one limit: what it has left, and what a pod of either kind takes.
type bound struct{ left, active, spare int64 }

// candidates returns who may pay, in order.
func (r *reference) candidates() []candidate {
	type ranked struct {
		candidate
		step int
		end  int64
		kept int
		e    *rqv1.Envelope
		b    *rqv1.Budget
		open bool
	}
	var all []ranked
	for _, b := range r.budgets {
		for i := range b.Spec.Envelopes {
			e := &b.Spec.Envelopes[i]
			relation, inFamily := r.relations[b.Spec.Owner]
			step := slices.Index([]rqv1.Relation{rqv1.RelationOwn, rqv1.RelationSibling, rqv1.RelationAncestor}, relation)
			serves := inFamily && (relation == rqv1.RelationOwn || e.Sharing != rqv1.SharingNone)
			if f := r.ask.Funding; !serves && f != nil && f.AllowBorrow && slices.Contains(f.Sponsors, b.Spec.Owner) {
				relation, step = rqv1.RelationSponsor, 3+slices.Index(f.Sponsors, b.Spec.Owner)
				serves = e.Lending != nil && e.Lending.Allow && Admits(e.Lending.To, r.ask.Owner)
			}
			if relation == "" {
				relation, step = rqv1.RelationSponsor, 1<<20 // it pays only for what it paid for before, after all others
			}
			open := serves && (e.Start == nil || !e.Start.After(r.now)) && (e.End == nil || e.End.After(r.now))
			c := ranked{candidate{Key{b.Name, e.Name}, relation, e.Selector, nil}, step, 1 << 62,
				r.ask.Kept[Key{b.Name, e.Name}].Pods, e, b, open}
			if e.End != nil && step < 1<<20 {
				c.end = e.End.Unix()
			}
			if e.Flavor == r.ask.Flavor && (c.open || c.kept > 0) {
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(x, y ranked) int {
		return cmp.Or(cmp.Compare(x.step, y.step), cmp.Compare(x.end, y.end), strings.Compare(x.key.Budget, y.key.Budget),
			strings.Compare(x.key.Envelope, y.key.Envelope))
	})
	pods := int64(r.ask.GPUsPerPod)
	keptBy := func(match func(ranked) bool) (n int64) {
		for _, c := range all {
			if match(c) {
				n += int64(c.kept)
			}
		}
		return n
	}
	gpus := func(most int64, used int64, kept int64) *bound { return &bound{max(most-used, kept*pods), pods, pods} }
	spend := func(most int64, spent Spend, kept int64) *bound {
		second := int64(time.Hour / time.Second)
		if r.ask.MaxDuration > 0 {
			second = int64(r.ask.MaxDuration / time.Second)
		}
		active := pods * second * 1000
		return &bound{max(int64(hours(most)-spent), kept*active), active, pods * second * int64(rates.Spare)}
	}
	caps := map[string][]*bound{}
	var borrow *bound
	if f := r.ask.Funding; f != nil && f.MaxBorrowGPUs != nil {
		borrowed := int64(0) // whatever the GPUs do (R5)
		for _, c := range r.charges {
			if c.Run == r.ask.Run && c.Relation == rqv1.RelationSponsor {
				borrowed += int64(c.GPUs)
			}
		}
		borrow = gpus(int64(*f.MaxBorrowGPUs), borrowed,
			keptBy(func(c ranked) bool { return c.relation == rqv1.RelationSponsor }))
	}
	var out []candidate
	for _, c := range all {
		here := func(x Charge) bool { return x.Payer == c.key }
		lent := func(x Charge) bool { return x.Payer == c.key && x.Relation == rqv1.RelationSponsor }
		kept := int64(c.kept)
		c.limits = append(c.limits, gpus(int64(c.e.Concurrency), r.used(here), kept))
		if !c.open {
			c.limits = append(c.limits, &bound{kept * pods, pods, pods})
		}
		if c.e.MaxGPUHours != nil {
			c.limits = append(c.limits, spend(*c.e.MaxGPUHours, r.committed(here), kept))
		}
		if c.relation == rqv1.RelationSponsor {
			if l := c.e.Lending; l != nil && l.MaxConcurrency != nil {
				c.limits = append(c.limits, gpus(int64(*l.MaxConcurrency), r.used(lent), kept))
			}
			if l := c.e.Lending; l != nil && l.MaxGPUHours != nil {
				c.limits = append(c.limits, spend(*l.MaxGPUHours, r.committed(lent), kept))
			}
			if borrow != nil {
				c.limits = append(c.limits, borrow)
			}
		}
		for i := range c.b.Spec.AggregateCaps {
			agg := &c.b.Spec.AggregateCaps[i]
			if !slices.Contains(agg.Envelopes, c.key.Envelope) {
				continue
			}
			name := c.b.Name + "/" + agg.Name
			if caps[name] == nil {
				covered := func(k Key) bool { return k.Budget == c.b.Name && slices.Contains(agg.Envelopes, k.Envelope) }
				kept := keptBy(func(c ranked) bool { return covered(c.key) })
				charged := func(x Charge) bool { return covered(x.Payer) }
				if agg.MaxConcurrency != nil {
					caps[name] = append(caps[name], gpus(int64(*agg.MaxConcurrency), r.used(charged), kept))
				}
				if agg.MaxGPUHours != nil {
					caps[name] = append(caps[name], spend(*agg.MaxGPUHours, r.committed(charged), kept))
				}
			}
			c.limits = append(c.limits, caps[name]...)
		}
		out = append(out, c.candidate)
	}
	return out
}

func (r *reference) used(match func(Charge) bool) (n int64) {
	for _, c := range r.charges {
		if match(c) && c.Role != rqv1.RoleBorrowed {
			n += int64(c.GPUs)
		}
	}
	return n
}

// committed is what is spent and what is promised. Windows of the generated Budgets began before any charge.
func (r *reference) committed(match func(Charge) bool) (sum Spend) {
	for _, c := range r.charges {
		if !match(c) {
			continue
		}
		seconds := int64(r.now.Sub(c.Start) / time.Second)
		if c.Until.IsZero() {
			seconds += 3600
		} else {
			seconds = max(seconds, int64(c.Until.Sub(c.Start)/time.Second))
		}
		sum += Spend(int64(c.GPUs) * int64(c.Rate) * seconds)
	}
	return sum
}

// pod is where a pod is to run, and what it does.
type pod struct {
	labels map[string]string
	spare  bool
}

// best returns how many pods each candidate pays for in the best assignment: the most for the first, then for the
// second, and so on; nil if there is none.
func (r *reference) best(candidates []candidate, pods []pod) (best []int) {
	counts := make([]int, len(candidates))
	var try func(at int)
	try = func(at int) {
		if at == len(pods) {
			if best == nil || slices.Compare(counts, best) > 0 {
				best = slices.Clone(counts)
			}
			return
		}
		for i, c := range candidates {
			if pods[at].labels != nil && !selects(c.selector, pods[at].labels) || !c.charge(pods[at].spare, 1) {
				continue
			}
			counts[i]++
			try(at + 1)
			counts[i]--
			c.charge(pods[at].spare, -1)
		}
	}
	try(0)
	return best
}

func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if value, found := labels[k]; !found || v != "*" && v != value {
			return false
		}
	}
	return true
}

// charge takes a pod from all limits over a candidate, or gives it back; it reports whether they let it in.
func (c candidate) charge(spare bool, by int64) bool {
	cost := func(b *bound) int64 {
		if spare {
			return b.spare
		}
		return b.active
	}
	if by > 0 && slices.ContainsFunc(c.limits, func(b *bound) bool { return b.left < cost(b) }) {
		return false
	}
	for _, b := range c.limits {
		b.left -= by * cost(b)
	}
	return true
}
