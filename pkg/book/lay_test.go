package book

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// TestALayoutThatIsDroppedTellsWhatNodesHadSaid instead of it: else each plan would be made as if nodes had said
// nothing.
func TestALayoutThatIsDroppedTellsWhatNodesHadSaid(t *testing.T) {
	said := []Turning{{Node: "n0", Most: 2, Skewed: true}}
	c := checking{laid: &layout{exact: true, instead: said}}
	lays, instead := c.lay(&Check{Spread: []string{"n1"}})
	if lays || c.laid != nil || !cmp.Equal(instead, said) {
		t.Errorf("it lays %v and tells %v, want no other layout and %v", lays, instead, said)
	}
}

// TestWhoIsMadeLaterComesLater whatever its index: where pods are spread the rules look at each beside those before it.
func TestWhoIsMadeLaterComesLater(t *testing.T) {
	g := &gang{}
	for i := range 4 {
		g.active.members = append(g.active.members, &member{part: rank.Part{Index: i}, standIn: i == 1})
	}
	g.spares.members = []*member{{part: rank.Part{Spare: true}}}
	g.active.size, g.spares.size = 4, 1
	var got []rank.Part
	for _, m := range g.asTheyCome() {
		got = append(got, m.part)
	}
	want := []rank.Part{{Index: 0}, {Index: 2}, {Index: 3}, {Index: 1}, {Spare: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("they come otherwise (-want +got):\n%s", diff)
	}
}
