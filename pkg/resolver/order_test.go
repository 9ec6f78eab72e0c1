package resolver

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOrderOfCuts states R19's order unit by unit.
func TestOrderOfCuts(t *testing.T) {
	steps := func(widths ...int) []Step {
		var out []Step
		for _, w := range widths {
			out = append(out, Step{Width: max(w, -w), Borrowed: w < 0})
		}
		return out
	}
	z, a, b := run("a", "z"), run("b", "a"), run("b", "b")
	z.Steps = steps(8, 4)
	a.Steps, a.Spares = steps(-24, 16, 8), []Spare{{Index: 3}, {Index: 5}}
	b.Steps, b.Spares = steps(12, -8, 4), []Spare{{Index: 9}}
	a.Steps, b.Steps = append(steps(40, -32), a.Steps...), append(steps(20), b.Steps...)
	a.Steps[0].Loan, a.Steps[1].Loan, b.Steps[0].Loan = true, true, true
	z.Ticket, z.Rest = true, []Holding{{Node: "n", GPUs: 1}}
	b.Ticket = true // but nothing that the ticket would free
	// What is on loan first, of which a has more. Then a's borrowed step; then b has the most left, then what is next of b
	// is borrowed; then a and z have two left.
	want := []string{
		"Return a 40", "Return a 32", "Return b 20",
		"DropSpare a 5", "DropSpare a 3", "DropSpare b 9",
		"Shrink a 24", "Shrink b 12", "Shrink b 8", "Shrink z 8", "Shrink a 16", "Shrink z 4", "Shrink a 8", "Shrink b 4",
		"Lottery z",
	}
	candidates := sorted([]Candidate{b, z, a})
	var got []string
	for _, unit := range unitsOf(candidates) {
		own := candidates[unit.candidate]
		text := fmt.Sprintf("%s %s", unit.action, own.Run.Name)
		switch unit.action {
		case "DropSpare":
			text += fmt.Sprint(" ", own.Spares[unit.index].Index)
		case "Shrink", "Return":
			text += fmt.Sprint(" ", own.Steps[unit.index].Width)
		}
		got = append(got, text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
