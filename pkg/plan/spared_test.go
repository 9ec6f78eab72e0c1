package plan

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// TestARefusalSaysWhatSparesAreTooMany has a Run of two groups of 16 GPUs wait for what its spares need: its refusal
// says with how many it would be paid for, or have room.
func TestARefusalSaysWhatSparesAreTooMany(t *testing.T) {
	for name, c := range map[string]struct {
		nodes  int // of each of two domains
		money  int32
		paysOn string // the one domain whose nodes are paid for; empty for both
		spares int32
		reason Reason
		want   string // the end of the message
	}{
		"the ranks are paid for": {4, 40, "", 1, InsufficientBudget, "; without spares it would be paid for"},
		"so is a spare a group":  {4, 48, "", 9, InsufficientBudget, "; with spares of 8 it would be paid for"},
		"not even the ranks":     {4, 24, "", 1, InsufficientBudget, "0 of 24 GPUs in use)"},
		"no spares":              {4, 24, "", 0, InsufficientBudget, "0 of 24 GPUs in use)"},
		"the ranks would fit":    {2, 64, "", 1, NeverFits, "; without spares it would fit"},
		"nor would they":         {1, 64, "", 1, NeverFits, "at most 8 fit even when it is empty"},
		"where it is paid for":   {4, 64, "d0", 1, NoRoomWhereFunded, "; without spares it would fit where it is paid for"},
		"nor there":              {3, 64, "d0", 1, NoRoomWhereFunded, ")"},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := topology.NewFleet([]string{"fabric"}, "fabric")
			fleet.SetSelectorKeys([]string{"fabric"})
			for _, domain := range []string{"d0", "d1"} {
				for n := range c.nodes {
					fleet.SetNode(topology.Node{Name: domain + "-" + string(rune('a'+n)), Flavor: "H100", GPUs: 8,
						Labels: map[string]string{"fabric": domain}})
				}
			}
			e := rqv1.Envelope{Name: "e", Flavor: "H100", Concurrency: c.money}
			if c.paysOn != "" {
				e.Selector = map[string]string{"fabric": c.paysOn}
			}
			accounts := budget.NewAccounts(budget.Rates{Spare: 500})
			accounts.SetBudget(&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "b"},
				Spec: rqv1.BudgetSpec{Owner: "org:a", Envelopes: []rqv1.Envelope{e}}})
			spec := &rqv1.RunSpec{Owner: "org:a", Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: 32},
				Locality: &rqv1.RunLocality{GroupGPUs: ptr(int32(16))}, SparesPerGroup: &c.spares}
			d, refusal := DemandOf(spec, 0, fleet.Whole("H100"), &Payers{Accounts: accounts, Fleet: fleet, Now: drawnAt})
			if refusal != nil {
				t.Fatal(refusal)
			}
			if Fits(fleet, accounts, d, Claim{}, d.EveryPod(), nil, drawnAt) {
				t.Error("it is said to fit")
			}
			_, refusal = Gang(fleet, accounts, d, Claim{}, d.EveryPod(), nil, drawnAt)
			if refusal == nil || refusal.Reason != c.reason || !strings.HasSuffix(refusal.Message, c.want) {
				t.Fatalf("in pods of %d: %+v, want %s …%s", d.GPUsPerPod, refusal, c.reason, c.want)
			}
		})
	}
}
