package resolver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// ticketsOf is what was drawn, whoever pays.
func ticketsOf(draws []rqv1.Draw) []Ticket {
	var out []Ticket
	for _, d := range draws {
		out = append(out, Ticket{Owner: d.Owner, Run: d.Run})
	}
	return out
}

// holder holds some GPUs by a ticket, with a priority.
func holder(l *lot, owner, name string, gpus int, priority int32, started int64) Candidate {
	c := run(owner, name)
	c.Rest, c.Ticket, c.Priority, c.Started = l.take(gpus), true, &priority, time.Unix(started, 0)
	return c
}

// ends lists the Runs that lotteries end.
func ends(cuts []rqv1.Cut) []string {
	var out []string
	for _, c := range cuts {
		if c.Action == rqv1.CutLottery {
			out = append(out, c.Run.Name)
		}
	}
	slices.Sort(out)
	return out
}

// small holds 4 GPUs by each of some tickets of one owner, and names names them.
func small(l *lot, n int) []Candidate {
	var out []Candidate
	for _, name := range names(n) {
		out = append(out, holder(l, "a", name, 4, 1, 1))
	}
	return out
}

func names(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("small%03d", i))
	}
	return out
}

func TestADrawnTicketIsPaidByLesserRuns(t *testing.T) {
	for name, c := range map[string]struct {
		pods    int // of 4 GPUs, on nodes of 4
		tenants func(l *lot) []Candidate
		drawn   string
		want    []string
	}{
		"by the lowest": {2, func(l *lot) []Candidate {
			return []Candidate{holder(l, "a", "top", 8, 9, 1), holder(l, "a", "mid", 8, 5, 1),
				holder(l, "a", "low", 8, 1, 1)}
		}, "top", []string{"low"}},
		"by the youngest of the lowest": {2, func(l *lot) []Candidate {
			return []Candidate{holder(l, "a", "top", 8, 9, 1), holder(l, "a", "older", 8, 1, 1),
				holder(l, "a", "younger", 8, 1, 2)}
		}, "top", []string{"younger"}},
		"by as many as it takes": {4, func(l *lot) []Candidate {
			return []Candidate{holder(l, "a", "top", 16, 9, 1), holder(l, "a", "x", 8, 1, 1),
				holder(l, "a", "y", 8, 1, 1)}
		}, "top", []string{"x", "y"}},
		"by no more than it takes": {2, func(l *lot) []Candidate {
			return []Candidate{holder(l, "a", "top", 8, 9, 1), holder(l, "a", "tiny", 4, 1, 1),
				holder(l, "a", "low", 8, 2, 1)}
		}, "top", []string{"low"}},
		"by itself where they are too few": {4, func(l *lot) []Candidate {
			return []Candidate{holder(l, "a", "top", 16, 9, 1), holder(l, "a", "x", 8, 1, 1)}
		}, "top", []string{"top"}},
		"by itself where they free less, and it would do": {1, func(l *lot) []Candidate {
			return []Candidate{holder(l, "a", "top", 8, 9, 1), holder(l, "a", "low", 4, 1, 1)}
		}, "top", []string{"top"}},
		"by sixteen": {16, func(l *lot) []Candidate {
			return append(small(l, 16), holder(l, "a", "top", 64, 9, 1))
		}, "top", names(16)},
		"by itself where it takes more": {17, func(l *lot) []Candidate {
			return append(small(l, 17), holder(l, "a", "top", 68, 9, 1))
		}, "top", []string{"top"}},
		"by itself where they are of another owner": {2, func(l *lot) []Candidate {
			return []Candidate{holder(l, "a", "top", 8, 9, 1), holder(l, "b", "low", 8, 1, 1)}
		}, "top", []string{"top"}},
		"by itself where they have the same": {2, func(l *lot) []Candidate {
			return []Candidate{holder(l, "a", "top", 8, 9, 1), holder(l, "a", "peer", 8, 9, 2)}
		}, "top", []string{"top"}},
		"by itself where they have no class that is there": {2, func(l *lot) []Candidate {
			lost := holder(l, "a", "lost", 8, 0, 1)
			lost.Priority = nil
			return []Candidate{holder(l, "a", "top", 8, 9, 1), lost}
		}, "top", []string{"top"}},
		"not the lowest": {2, func(l *lot) []Candidate {
			return []Candidate{holder(l, "a", "top", 8, 9, 1), holder(l, "a", "low", 8, 1, 1)}
		}, "low", []string{"low"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLot(40, 4)
			candidates := c.tenants(l)
			w := &domain{free: map[string]int{}, pods: c.pods, each: 4}
			set, how, ok := Odds(w, candidates)
			if !ok {
				t.Fatal("the Run does not fit whatever is cut")
			}
			for n := range 1000 {
				plan, _ := Resolve(w, candidates, set, nonce(n))
				if plan.Draws[0].Run.Name != c.drawn || len(plan.Draws) > 1 {
					continue
				}
				if diff := cmp.Diff(c.want, ends(plan.Cuts)); diff != "" {
					t.Errorf("ended by lottery (-want +got):\n%s", diff)
				}
				if paid := len(plan.Draws[0].PaidBy) > 0; paid == slices.Contains(c.want, c.drawn) {
					t.Errorf("the record says that it is paid by %v", plan.Draws[0].PaidBy)
				}
				if found := Verify(record(set, how, nonce(n), plan)); len(found) > 0 {
					t.Errorf("the record is not valid: %q", found)
				}
				return
			}
			t.Fatalf("%s is never drawn alone", c.drawn)
		})
	}
}

// A record that has somebody else pay than may is found out, also one whose priorities were changed after the draw.
func TestAForgedPaymentIsFound(t *testing.T) {
	l := newLot(16, 4)
	candidates := []Candidate{holder(l, "a", "top", 8, 9, 1), holder(l, "a", "low", 8, 1, 1),
		holder(l, "a", "peer", 8, 9, 1), holder(l, "b", "other", 8, 1, 1)}
	w := &domain{free: map[string]int{}, pods: 2, each: 4}
	set, how, _ := Odds(w, candidates)
	paidRecord := func() *rqv1.Reservation {
		for n := 0; ; n++ {
			if plan, _ := Resolve(w, candidates, set, nonce(n)); plan.Draws[0].Run.Name == "top" {
				return record(slices.Clone(set), how, nonce(n), plan)
			}
		}
	}
	payBy := func(r *rqv1.Reservation, owner, name string) {
		c := run(owner, name)
		r.Status.Lottery.Draws[0].PaidBy = []rqv1.NamespacedName{c.Run}
		r.Status.Cuts[0].Run, r.Status.Cuts[0].UID = c.Run, c.UID
	}
	for name, c := range map[string]struct {
		forge func(r *rqv1.Reservation)
		want  string
	}{
		"sound":                        {func(*rqv1.Reservation) {}, ""},
		"by a peer":                    {func(r *rqv1.Reservation) { payBy(r, "a", "peer") }, "which is not lower"},
		"by another owner":             {func(r *rqv1.Reservation) { payBy(r, "b", "other") }, "only its own owner's"},
		"by somebody without a ticket": {func(r *rqv1.Reservation) { payBy(r, "a", "nobody") }, "does not list both"},
		"said by nobody": {func(r *rqv1.Reservation) {
			r.Status.Lottery.Draws[0].PaidBy = nil
		}, "not drawn, nor pays"},
		"and cut all the same": {func(r *rqv1.Reservation) {
			top := run("a", "top")
			r.Status.Cuts = append(r.Status.Cuts, rqv1.Cut{Run: top.Run, UID: top.UID, Action: rqv1.CutLottery, GPUs: 8})
		}, "Draw 1 is ns-a/top, which is cut although others are said to pay"},
		"twice by one": {func(r *rqv1.Reservation) {
			d := &r.Status.Lottery.Draws[0]
			d.PaidBy = append(d.PaidBy, d.PaidBy...)
		}, "pays more than once"},
		"by seventeen": {func(r *rqv1.Reservation) {
			d := &r.Status.Lottery.Draws[0]
			for _, name := range names(16) {
				d.PaidBy = append(d.PaidBy, run("a", name).Run)
			}
		}, "at most 16 may pay"},
		"by itself": {func(r *rqv1.Reservation) {
			d := &r.Status.Lottery.Draws[0]
			d.PaidBy = append(d.PaidBy, d.Run)
		}, "to pay for another and to be paid for"},
		"by the last that was drawn": {func(r *rqv1.Reservation) {
			d := NewDraw([32]byte(unhex(t, r.Status.Lottery.Nonce)), r.Status.ConflictSet)
			r.Status.Lottery.Draws = nil
			for ticket, ok := d.Next(); ok && ticket.Run.Name != "low"; ticket, ok = d.Next() {
				r.Status.Lottery.Draws = append(r.Status.Lottery.Draws, rqv1.Draw{Owner: ticket.Owner, Run: ticket.Run})
			}
			low := rqv1.Draw{Owner: run("a", "low").Owner, Run: run("a", "low").Run}
			r.Status.Lottery.Draws[0].PaidBy = []rqv1.NamespacedName{low.Run}
			r.Status.Lottery.Draws = append(r.Status.Lottery.Draws, low)
		}, "the last, is ns-a/low, which ends by it"},
		"and not cut": {func(r *rqv1.Reservation) { r.Status.Cuts = nil }, "which is not cut"},
		"by priorities that came later": {func(r *rqv1.Reservation) {
			for i := range r.Status.ConflictSet {
				if e := &r.Status.ConflictSet[i]; e.Run.Name == "peer" {
					low := int32(0)
					e.Priority = &low
				}
			}
			payBy(r, "a", "peer")
		}, "conflictSetDigest"},
	} {
		t.Run(name, func(t *testing.T) {
			r := paidRecord()
			c.forge(r)
			found := strings.Join(Verify(r), " ")
			if c.want == "" && found != "" || !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}
