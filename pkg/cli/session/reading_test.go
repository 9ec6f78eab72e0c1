package session

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// TestAsPaid lists one open GPU lease for each pod, and none twice, while two exchange payers.
func TestAsPaid(t *testing.T) {
	paid := func(name, budget string) rqv1.Lease {
		return rqv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Spec: rqv1.LeaseSpec{Payer: rqv1.LeasePayer{Budget: budget}, Start: metav1.NewMicroTime(time.Unix(1e9, 0))}}
	}
	low, high, other := paid("low", "lender"), paid("high", "rai"), paid("other", "rai")
	x := rank.Exchanged(&low, &high, low.Spec.Start.Add(time.Hour))
	after := []string{"high-2 by lender", "low-2 by rai"}
	for name, c := range map[string]struct {
		read []rqv1.Lease
		open []string
	}{
		"nothing is written":   {[]rqv1.Lease{low, high, other}, []string{"high by rai", "low by lender", "other by rai"}},
		"the first is":         {[]rqv1.Lease{low, high, other, *x.Now[0]}, append(after, "other by rai")},
		"both are":             {[]rqv1.Lease{*x.Now[1], low, high, *x.Now[0]}, after},
		"one that was is over": {[]rqv1.Lease{*x.Now[1], *x.Closed()[0], high, *x.Now[0]}, after},
	} {
		var open []string
		for _, l := range asPaid(c.read) {
			if !l.Status.Closed {
				open = append(open, l.Name+" by "+l.Spec.Payer.Budget)
			}
		}
		slices.Sort(open)
		if diff := cmp.Diff(c.open, open); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOwnerMatches(t *testing.T) {
	for _, c := range []struct {
		pattern string
		owner   rqv1.Owner
		want    bool
	}{
		{"", "org:ai", true},
		{"org:ai", "org:ai", true},
		{"org:ai", "org:ai:rai", false},
		{"org:ai*", "org:ai:rai", true},
		{"org:ai:*", "org:ai", false},
		{"*", "org:ai", true},
	} {
		if got := OwnerMatches(c.pattern, c.owner); got != c.want {
			t.Errorf("ownerMatches(%q, %q) = %v", c.pattern, c.owner, got)
		}
	}
}
