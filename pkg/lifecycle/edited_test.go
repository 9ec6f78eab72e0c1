package lifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestEditedWhileStarting has all pods of a start bound under terms that the Run has or has no more: it runs, or starts
// again.
func TestEditedWhileStarting(t *testing.T) {
	lends := func(most int32, sponsors ...rqv1.Owner) func(*rqv1.RunSpec) {
		return func(s *rqv1.RunSpec) {
			s.Funding = &rqv1.RunFunding{AllowBorrow: true, MaxBorrowGPUs: &most, Sponsors: sponsors}
		}
	}
	hour := &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: time.Hour}}
	for name, c := range map[string]struct {
		is      func(*rqv1.RunSpec)
		restart bool
	}{
		"as planned":           {lends(8, "org:b"), false},
		"another sponsor":      {lends(8, "org:c"), true},
		"no funding":           {func(*rqv1.RunSpec) {}, true},
		"less may be borrowed": {lends(4, "org:b"), true},
		"another owner":        {func(s *rqv1.RunSpec) { lends(8, "org:b")(s); s.Owner = "org:z" }, true},
		"a maxDuration, now":   {func(s *rqv1.RunSpec) { lends(8, "org:b")(s); s.Runtime = hour }, true},
		"a checkpoint, for free": {func(s *rqv1.RunSpec) {
			lends(8, "org:b")(s)
			s.Runtime = &rqv1.RunRuntime{Checkpoint: hour.MaxDuration}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(scene(func(o *Observed) {
				o.pods("n0", "n1", "n2", "n3")
				o.leases(time.Second, map[int]string{0: "n0", 1: "n1", 2: "n2", 3: "n3"})
				o.Leases[3].Spec.Payer = rqv1.LeasePayer{Budget: "b", Owner: "org:b", Relation: rqv1.RelationSponsor}
				for _, l := range o.Leases {
					l.Spec.Slice.Nodes[0].GPUs = 8
				}
				c.is(&o.Run.Spec)
			}))
			phase, deleted := d.Status.Phase, len(d.Delete)
			if c.restart != (deleted == 4) || c.restart == (phase == rqv1.RunRunning) {
				t.Errorf("%d pods are deleted, and the Run is %s: %s", deleted, phase, d.Status.Message)
			}
		})
	}
}
