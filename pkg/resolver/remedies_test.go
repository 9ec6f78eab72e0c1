package resolver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRemedies(t *testing.T) {
	_, first := firstExample()
	l := newLot(20, 8)
	s, x := run("a", "s"), run("a", "x")
	s.Spares, s.Rest = []Spare{{Index: 1, Holds: l.take(16)}, {Index: 2, Holds: l.take(16)}}, l.take(9)
	s.Steps = []Step{{Width: 9, Holds: l.take(4)}}
	x.Rest, x.Ticket = l.take(1), true
	elsewhere := run("b", "y")
	elsewhere.Spares = []Spare{{Index: 1, Holds: l.take(2)}}
	for _, tc := range []struct {
		name       string
		deficit    int
		candidates []Candidate
		around     []Candidate
		want       []string
	}{
		{"first example", 18, first, first, []string{"Shrink elastic runs by step size (16 GPUs)",
			"Run fair lottery if deficit remains (2 GPUs)"}},
		{"all kinds", 100, []Candidate{x, s}, []Candidate{x, s}, []string{
			"Drop spares in scope (32 GPUs)", "Shrink elastic runs by step size (4 GPUs)",
			"Run fair lottery if deficit remains (1 GPU)",
		}},
		{"spares of all around", 100, []Candidate{x}, []Candidate{x, s, elsewhere},
			[]string{"Drop spares in scope (34 GPUs)", "Run fair lottery if deficit remains (1 GPU)"}},
		{"no more than is short", 34, []Candidate{x, s}, []Candidate{x, s},
			[]string{"Drop spares in scope (32 GPUs)", "Shrink elastic runs by step size (2 GPUs)"}},
		{"nothing is short", 0, []Candidate{x, s}, []Candidate{x, s}, nil},
		{"nothing to give", 5, nil, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Remedies(tc.deficit, tc.candidates, tc.around)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
