package budget

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// rates are the defaults of R7.
var rates = Rates{Spare: 500, Opportunistic: 0}

func after(d time.Duration) *metav1.Time { t := metav1.NewTime(noon.Add(d)); return &t }

func ptr[T any](v T) *T { return &v }

// of states a Budget; envelopes are of H100 unless they say otherwise.
func of(name string, owner rqv1.Owner, envelopes ...rqv1.Envelope) *rqv1.Budget {
	for i := range envelopes {
		if envelopes[i].Flavor == "" {
			envelopes[i].Flavor = "H100"
		}
	}
	return &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: rqv1.BudgetSpec{Owner: owner, Envelopes: envelopes}}
}

// flat states a Budget with one envelope, named e, of so many GPUs.
func flat(name string, owner rqv1.Owner, gpus int32) *rqv1.Budget {
	return of(name, owner, rqv1.Envelope{Name: "e", Concurrency: gpus})
}

func under(b *rqv1.Budget, parents ...rqv1.Owner) *rqv1.Budget {
	b.Spec.Parents = parents
	return b
}

func capped(b *rqv1.Budget, caps ...rqv1.AggregateCap) *rqv1.Budget {
	b.Spec.AggregateCaps = caps
	return b
}

// lends is a policy that lends to some.
func lends(to ...rqv1.ACLEntry) *rqv1.Lending { return &rqv1.Lending{Allow: true, To: to} }

func from(sponsors ...rqv1.Owner) *rqv1.RunFunding {
	return &rqv1.RunFunding{AllowBorrow: true, Sponsors: sponsors}
}

func accountsOf(budgets ...*rqv1.Budget) *Accounts {
	a := NewAccounts(rates)
	for _, b := range budgets {
		a.SetBudget(b)
	}
	return a
}

// held is an open charge since an hour before noon.
func held(payer Key, owner rqv1.Owner, relation rqv1.Relation, role rqv1.LeaseRole, gpus int) Charge {
	c := Charge{Payer: payer, Owner: owner, Run: "run", Relation: relation, Role: role, GPUs: gpus, Rate: FullRate,
		Start: noon.Add(-time.Hour)}
	switch role {
	case rqv1.RoleSpare:
		c.Rate = rates.Spare
	case rqv1.RoleBorrowed:
		c.Rate = rates.Opportunistic
	}
	return c
}

// start opens Leases for pods on nodes without labels, the last ones spares, and returns who pays for how many of them.
func start(t *testing.T, a *Accounts, run string, ask Ask, pods int, now time.Time) []string {
	t.Helper()
	ask.Run = run
	c := a.Cover(ask, now)
	class := c.Class(nil)
	classes, spare := make([]int, pods), make([]bool, pods)
	for i := range classes {
		classes[i], spare[i] = class, i >= pods-ask.Spares
	}
	payers := c.Assign(classes, spare)
	if payers == nil {
		return []string{"nobody"}
	}
	for i, p := range payers {
		o := c.Offers[p]
		charge := Charge{Payer: o.Key, Owner: ask.Owner, Run: run, Relation: o.Relation, Role: rqv1.RoleActive,
			GPUs: ask.GPUsPerPod, Rate: FullRate, Start: now}
		if spare[i] {
			charge.Role, charge.Rate = rqv1.RoleSpare, a.RateOf(rqv1.RoleSpare)
		}
		if ask.MaxDuration > 0 {
			charge.Until = now.Add(ask.MaxDuration)
		}
		a.Open(fmt.Sprintf("ns/%s-%03d", run, i), charge)
	}
	return paid(c, payers, spare, ask.GPUsPerPod)
}

// paid says who pays for how many GPUs, in the order of pods.
func paid(c *Cover, payers []int, spare []bool, gpus int) []string {
	var out []string
	for i := 0; i < len(payers); {
		n := i
		for n < len(payers) && payers[n] == payers[i] && spare[n] == spare[i] {
			n++
		}
		what := ""
		if spare[i] {
			what = " spare"
		}
		o := c.Offers[payers[i]]
		out = append(out, fmt.Sprintf("%s %d%s (%s)", o.Key, (n-i)*gpus, what, o.Relation))
		i = n
	}
	return out
}

// offers says what each envelope offers, in order.
func offers(c *Cover) []string {
	var out []string
	for _, o := range c.Offers {
		text := fmt.Sprintf("%d %s %s: %d pods", o.Step, o.Relation, o.Key, o.Pods)
		if o.Refusal != "" {
			text += ", " + o.Refusal
		} else {
			text += ", " + o.Limit.String()
		}
		if o.Untold {
			text += ", untold"
		}
		out = append(out, text)
	}
	return out
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }
