package budget

import (
	"fmt"
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// kin says the order in which an owner's family pays.
func kin(a *Accounts, owner rqv1.Owner) []string {
	var out []string
	for _, s := range a.related().steps(owner) {
		out = append(out, fmt.Sprint(s.relation, " ", s.owners))
	}
	return out
}

func TestFamily(t *testing.T) {
	tree := []*rqv1.Budget{
		flat("ai", "org:ai", 1), flat("rai", "org:ai:rai", 1), flat("al", "org:ai:rai:al", 1),
		flat("sys", "org:ai:rai:sys", 1),
		flat("mm", "org:ai:mm", 1), flat("vis", "org:ai:mm:vis", 1),
	}
	dag := []*rqv1.Budget{
		flat("root", "root", 1), under(flat("x", "x", 1), "root"), under(flat("y", "y", 1), "root"),
		under(flat("both", "both", 1), "x", "y"), under(flat("also-both", "both", 1), "z"),
		under(flat("xs", "xs", 1), "x"), under(flat("ys", "ys", 1), "y"), under(flat("zs", "zs", 1), "z"),
	}
	for _, tc := range []struct {
		name    string
		budgets []*rqv1.Budget
		owner   rqv1.Owner
		want    []string
	}{
		{"a leaf", tree, "org:ai:rai:al",
			[]string{"own [org:ai:rai:al]", "sibling [org:ai:rai:sys]", "ancestor [org:ai:rai]", "ancestor [org:ai]"}},
		{"cousins are no family", tree, "org:ai:mm:vis", []string{"own [org:ai:mm:vis]", "ancestor [org:ai:mm]",
			"ancestor [org:ai]"}},
		{"children do not pay for parents", tree, "org:ai:rai", []string{"own [org:ai:rai]", "sibling [org:ai:mm]",
			"ancestor [org:ai]"}},
		{"the root has nobody", tree, "org:ai", []string{"own [org:ai]"}},
		{"an owner without a Budget, under the nearest that has one", tree, "org:ai:rai:new:team",
			[]string{"own [org:ai:rai:new:team]", "sibling [org:ai:rai:al org:ai:rai:sys]", "ancestor [org:ai:rai]",
				"ancestor [org:ai]"}},
		{"a prefix of a name is no ancestor", []*rqv1.Budget{flat("r", "org:ai:r", 1)}, "org:ai:rai",
			[]string{"own [org:ai:rai]"}},
		{"strangers", tree, "other:team", []string{"own [other:team]"}},
		{"parents of all Budgets of an owner", dag, "both",
			[]string{"own [both]", "sibling [xs ys zs]", "ancestor [x y z]", "ancestor [root]"}},
		{"an ancestor that shares a parent is an ancestor",
			[]*rqv1.Budget{flat("r", "r", 1), under(flat("p", "p", 1), "r"), under(flat("c", "c", 1), "p", "r"),
				under(flat("d", "d", 1), "r")},
			"c", []string{"own [c]", "sibling [d]", "ancestor [p r]"}},
		{"nearest first, by the shortest way",
			[]*rqv1.Budget{under(flat("c", "c", 1), "far", "near"), under(flat("far", "far", 1), "mid"),
				under(flat("mid", "mid", 1), "top"),
				under(flat("near", "near", 1), "top"), flat("top", "top", 1)},
			"c", []string{"own [c]", "ancestor [far near]", "ancestor [mid top]"}},
		{"a parent without a Budget joins siblings",
			[]*rqv1.Budget{under(flat("a", "a", 1), "p"), under(flat("b", "b", 1), "p")},
			"a", []string{"own [a]", "sibling [b]", "ancestor [p]"}},
	} {
		t.Run(tc.name, func(t *testing.T) { same(t, "order", tc.want, kin(accountsOf(tc.budgets...), tc.owner)) })
	}
}

func TestCirclesOfParents(t *testing.T) {
	a := accountsOf(
		under(flat("a", "a", 1), "b", "out"), under(flat("b", "b", 1), "c"), under(flat("c", "c", 1), "a"),
		under(flat("s", "s", 1), "s"), flat("out", "out", 1), under(flat("child", "child", 1), "a"),
		under(flat("org", "org", 1), "x"), under(flat("x", "x", 1), "org:sub"), flat("sub", "org:sub", 1),
		flat("leaf", "org:sub:leaf", 1),
	)
	for owner, want := range map[rqv1.Owner][]rqv1.Owner{
		"a": {"a", "b", "c"}, "b": {"a", "b", "c"}, "c": {"a", "b", "c"}, "s": {"s"}, "child": nil, "out": nil, "nobody": nil,
		"org": {"org", "org:sub", "x"}, "org:sub": {"org", "org:sub", "x"}, "org:sub:leaf": nil,
	} {
		same(t, "the circle of "+string(owner), want, a.Circular(owner))
	}
	for owner, want := range map[rqv1.Owner][]string{
		"a":            {"own [a]", "ancestor [out]"}, // the parent that is not in the circle stays
		"b":            {"own [b]"},
		"s":            {"own [s]"},
		"child":        {"own [child]", "ancestor [a]", "ancestor [out]"},
		"org:sub:leaf": {"own [org:sub:leaf]", "ancestor [org:sub]"},
	} {
		same(t, "the family of "+string(owner), want, kin(a, owner))
	}
	a.SetBudget(flat("c", "c", 1))
	same(t, "the circle of a, once it is broken", []rqv1.Owner(nil), a.Circular("a"))
	same(t, "the family of a, once it is broken", []string{"own [a]", "ancestor [b out]", "ancestor [c]"}, kin(a, "a"))
}

func TestFamilyFollowsEdits(t *testing.T) {
	a := accountsOf(flat("p", "p", 1), under(flat("a", "a", 1), "p"), under(flat("b", "b", 1), "p"))
	same(t, "before", []string{"own [a]", "sibling [b]", "ancestor [p]"}, kin(a, "a"))
	a.DeleteBudget("b")
	same(t, "without b", []string{"own [a]", "ancestor [p]"}, kin(a, "a"))
	a.SetBudget(under(flat("b", "b", 1), "p"))
	a.SetBudget(flat("a", "a", 1))
	same(t, "without a parent", []string{"own [a]"}, kin(a, "a"))
}

// Owners that have no Budget are anybody's to name: not all that were ever named are remembered.
func TestOwnersWithoutABudgetAreForgotten(t *testing.T) {
	a := accountsOf(flat("a", "a", 1))
	for i := range 2 * mostStrangers {
		a.related().steps(rqv1.Owner(fmt.Sprintf("x%d", i)))
	}
	if known := len(a.related().kin); known > mostStrangers+1 {
		t.Errorf("%d owners are remembered", known)
	}
}

func TestAdmits(t *testing.T) {
	for _, tc := range []struct {
		entry    rqv1.ACLEntry
		borrower rqv1.Owner
		want     bool
	}{
		{"*", "any:body", true},
		{"org:ai:rai", "org:ai:rai", true},
		{"org:ai:rai", "org:ai:rai:sys", false},
		{"org:ai:rai", "org:ai:rail", false},
		{"org:ai:rai*", "org:ai:rai", true},
		{"org:ai:rai*", "org:ai:rai:sys", true},
		{"org:ai:rai*", "org:ai:rail", true}, // a prefix is a prefix (R4)
		{"org:ai:rai*", "org:ai:ra", false},
		{"org:ai:rai:*", "org:ai:rail", false},
		{"org:ai:rai:*", "org:ai:rai", false},
		{"org:ai:rai:*", "org:ai:rai:sys", true},
	} {
		if got := Admits([]rqv1.ACLEntry{"else", tc.entry}, tc.borrower); got != tc.want {
			t.Errorf("%s admits %s: %v, want %v", tc.entry, tc.borrower, got, tc.want)
		}
	}
	if Admits(nil, "org") {
		t.Errorf("an empty list admits somebody")
	}
}
