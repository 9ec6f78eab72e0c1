package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// What passes by itself is not said to be for ever.
func TestWhyADateIsLost(t *testing.T) {
	for reason, want := range map[plan.Reason]string{
		plan.NotYet:        "no date can be promised for now: m; other has taken the room",
		plan.NodesRejected: "no date can be promised any more: m; other has taken the room",
	} {
		f := &Observed{}
		f.Refusal, f.Usurped = &plan.Refusal{Reason: reason, Message: "m"}, "other has taken the room"
		if diff := cmp.Diff(want, dateLost(f)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}
