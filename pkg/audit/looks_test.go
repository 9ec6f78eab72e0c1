package audit_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/audit"
)

// TestTwoLooks reads a world twice while it changes: what only one of them has is no finding, and what changed between
// them and may not is one.
func TestTwoLooks(t *testing.T) {
	r := rules(t)
	torn := sound()
	torn.Pods = torn.Pods[1:] // read before the pod was there
	less := sound()
	less.Leases = less.Leases[1:] // read before its Lease was
	for name, looks := range map[string][2]*audit.World{"pods first": {torn, sound()}, "Leases first": {less, sound()},
		"torn in two ways": {torn, less}} {
		if found := audit.Standing(r.Look(looks[0]), r.Look(looks[1])); len(found) > 0 {
			t.Errorf("%s: found %+v", name, found)
		}
	}
	// One pod of two is done each time, and nothing is known yet of the next: something is being done about the Run.
	first, second := sound(), sound()
	first.Pods, first.Leases = first.Pods[1:], first.Leases[1:]
	second.Pods, second.Leases = slices.Delete(second.Pods, 1, 2), slices.Delete(second.Leases, 1, 2)
	for _, w := range []*audit.World{first, second} {
		w.Budgets, w.Runs[0].Spec.Source = nil, rqv1.SourcePods
	}
	if found := audit.Standing(r.Look(first), r.Look(second)); len(found) > 0 {
		t.Errorf("pods that take turns: found %+v", found)
	}
	reopened, retold := sound(), sound()
	reopened.Leases[4].Status = rqv1.LeaseStatus{}
	closed(retold.Leases[4], time.Hour, rqv1.ClosedFailed)
	for _, after := range []*audit.World{reopened, retold} {
		after.Budgets = nil
		found := audit.Standing(r.Look(sound()), r.Look(after))
		if len(found) != 1 || found[0].Invariant != "I4" ||
			!strings.Contains(found[0].Message, "was closed and has changed since") {
			t.Errorf("found %+v, want I4", found)
		}
	}
	// Runs began and ended between the looks, and each look came before a status that says so.
	was, is := sound(), sound()
	for after, w := range map[time.Duration]*audit.World{0: was, 20 * time.Second: is} {
		w.At, w.Whole, w.Leases = w.At.Add(after), false, w.Leases[:4]
		written := metav1.NewTime(w.At.Add(-2 * time.Second))
		w.Budgets[0].Status.ObservedAt = &written
		w.Budgets[0].Status.Envelopes[0].OwnedGPUs += 8
		w.Budgets[0].Status.UsedGPUs += 8
		w.Budgets[0].Status.AggregateCaps[0].UsedGPUs += 8
	}
	if found := audit.Standing(r.Look(was), r.Look(is)); len(found) > 0 {
		t.Errorf("GPU leases that ended a moment ago: found %+v", found)
	}
	gone := sound()
	gone.Leases = gone.Leases[:4]
	gone.Budgets = nil
	if found := audit.Standing(r.Look(sound()), r.Look(gone)); len(found) > 0 {
		t.Errorf("a Lease that was settled between: found %+v", found)
	}
}
