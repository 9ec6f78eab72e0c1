package rank

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// paid is an open Lease of a pod that a Budget pays for.
func paid(name, budget string, relation rqv1.Relation) *rqv1.Lease {
	l := &rqv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name,
		Labels:      map[string]string{rqv1.LabelPodUID: name},
		Annotations: map[string]string{rqv1.AnnotationDomain: "domain-of-" + name}}}
	l.Spec = rqv1.LeaseSpec{Owner: "org:a", Payer: rqv1.LeasePayer{Budget: budget, Owner: rqv1.Owner("org:" + budget),
		Relation: relation, Rate: "1"}, PaidByEnvelope: "of-" + budget, Reason: rqv1.ReasonStart,
		Start: metav1.NewMicroTime(noon)}
	return l
}

// TestExchanged has two pods go on with each other's payers, and all else as it was.
func TestExchanged(t *testing.T) {
	low, high := paid("low", "s", rqv1.RelationSponsor), paid("high", "own", rqv1.RelationOwn)
	at := noon.Add(time.Hour)
	x := Exchanged(low, high, at)
	for i, want := range []struct{ name, lease, with, budget, envelope, relation string }{
		{"low-2", "low", "high", "own", "of-own", "own"}, {"high-2", "high", "low", "s", "of-s", "sponsor"},
	} {
		l := x.Now[i]
		got := struct{ name, lease, with, budget, envelope, relation string }{l.Name, l.Spec.Repaid.Lease, l.Spec.Repaid.With,
			l.Spec.Payer.Budget, l.Spec.PaidByEnvelope, string(l.Spec.Payer.Relation)}
		if got != want || l.Spec.Reason != rqv1.ReasonRepaid || !l.Spec.Start.Time.Equal(at) || !l.HeldSince().Equal(noon) ||
			!l.Spec.Admitted.Time.Equal(noon) || l.PodUID() != x.Was[i].PodUID() || l.Spec.Payer.Rate != "1" ||
			l.Annotations[rqv1.AnnotationDomain] != "domain-of-"+x.Was[i].Name {
			t.Errorf("%+v, want %+v: %+v", got, want, l)
		}
	}
	again := Exchanged(x.Now[1], paid("last", "own", rqv1.RelationOwn), at.Add(time.Hour))
	if l := again.Now[0]; l.Name != "high-3" || !l.HeldSince().Equal(noon) || !l.Spec.Admitted.Time.Equal(noon) {
		t.Errorf("the third Lease of a pod: %+v", l)
	}
}

// TestNextLeaseName keeps names different, and no longer than they may be.
func TestNextLeaseName(t *testing.T) {
	long := LeaseName(strings.Repeat("a", 300), "01234567-89ab")
	for _, test := range []struct {
		name      string
		continues bool
		want      string
	}{
		{"train-3-01234567", false, "train-3-01234567-2"},
		{"train-3-01234567-2", true, "train-3-01234567-3"},
		{"train-3-01234567-9", true, "train-3-01234567-10"},
		{long, false, long[2:] + "-2"},
		{long[2:] + "-9", true, long[3:] + "-10"},
	} {
		if got := NextLeaseName(test.name, test.continues); got != test.want || len(got) > longestName {
			t.Errorf("after %s comes %s, want %s", test.name, got, test.want)
		}
	}
}

// TestUnfinished finds of an exchange what is still to be written, whatever of it is, and in any order.
func TestUnfinished(t *testing.T) {
	low, high := paid("low", "s", rqv1.RelationSponsor), paid("high", "own", rqv1.RelationOwn)
	other := paid("other", "own", rqv1.RelationOwn)
	x := Exchanged(low, high, noon.Add(time.Hour))
	ended := x.Closed()
	for name, test := range map[string]struct {
		leases []*rqv1.Lease
		finds  int
	}{
		"nothing is written":       {[]*rqv1.Lease{low, high, other}, 0},
		"the first is":             {[]*rqv1.Lease{low, high, other, x.Now[0]}, 1},
		"the first is read first":  {[]*rqv1.Lease{x.Now[0], other, high, low}, 1},
		"both are":                 {[]*rqv1.Lease{low, x.Now[1], high, x.Now[0], other}, 1},
		"the first is closed":      {[]*rqv1.Lease{ended[0], high, other, x.Now[0], x.Now[1]}, 1},
		"and not read":             {[]*rqv1.Lease{high, other, x.Now[1], x.Now[0]}, 1},
		"the second is closed":     {[]*rqv1.Lease{low, ended[1], other, x.Now[0], x.Now[1]}, 1},
		"all is written":           {[]*rqv1.Lease{ended[0], ended[1], other, x.Now[0], x.Now[1]}, 0},
		"and what is over is gone": {[]*rqv1.Lease{x.Now[0], x.Now[1], other}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if found := Unfinished(test.leases); len(found) != test.finds {
				t.Fatalf("found %d, want %d", len(found), test.finds)
			}
			payers := map[string]string{}
			for _, l := range AsPaid(test.leases) {
				if !l.Status.Closed {
					payers[string(l.PodUID())] += l.Spec.Payer.Budget
				} else if l.Status.ClosureReason != rqv1.ClosedRepaid || !l.Status.Ended.Time.Equal(noon.Add(time.Hour)) {
					t.Errorf("%s is closed: %+v", l.Name, l.Status)
				}
			}
			want := map[string]string{"low": "own", "high": "s", "other": "own"}
			if test.finds == 0 && name == "nothing is written" {
				want = map[string]string{"low": "s", "high": "own", "other": "own"}
			}
			for pod, budget := range want {
				if payers[pod] != budget {
					t.Errorf("%s is paid for by %q, want %q", pod, payers[pod], budget)
				}
			}
			if low.Status.Closed || high.Status.Closed {
				t.Error("what was read is changed")
			}
		})
	}
}
