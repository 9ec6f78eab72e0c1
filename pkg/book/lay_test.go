package book

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestALayoutThatIsDroppedTellsWhatNodesHadSaid instead of it: else each plan would be made as if nodes had said nothing.
func TestALayoutThatIsDroppedTellsWhatNodesHadSaid(t *testing.T) {
	said := []Turning{{Node: "n0", Most: 2, Skewed: true}}
	c := checking{laid: &layout{exact: true, instead: said}}
	lays, instead := c.lay(&Check{Spread: []string{"n1"}})
	if lays || c.laid != nil || !cmp.Equal(instead, said) {
		t.Errorf("it lays %v and tells %v, want no other layout and %v", lays, instead, said)
	}
}
