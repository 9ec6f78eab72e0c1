package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A rank that was lost and that the API server does not take has no room once the deadline has passed: the Run goes on
// narrower if it can, and ends as it runs otherwise (R27, R22).
func TestDecideOnARankThatIsNotTaken(t *testing.T) {
	lacking := func(since time.Duration, change func(o *Observed)) Observed {
		return scene(func(o *Observed) {
			o.pods("n0", "", "n2", "n3")
			started(o)
			o.Leases = append(o.Leases[:1:1], o.Leases[2:]...)
			o.Problem, o.NotTaken = "exceeded quota", noon.Add(-since)
			if change != nil {
				change(o)
			}
		})
	}
	malleable := func(o *Observed) {
		o.Run.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 16, MaxTotalGPUs: 32, StepGPUs: 16}
		o.Demand.LeastPods, o.Demand.StepPods = 2, 2
		o.Run.Status.Width = &rqv1.RunWidth{Granted: 32}
	}
	for name, test := range map[string]struct {
		observed Observed
		want     string
	}{
		"it is tried for a while": {lacking(30*time.Second, nil),
			"create run-1; Running: replacing 1 of 4 pods: exceeded quota"},
		"then the Run has failed": {lacking(time.Minute, nil),
			"delete run-0; delete run-2; delete run-3; Failed: a lost pod could not be replaced and the Run declares no " +
				"checkpoint: exceeded quota"},
		"or waits, with a checkpoint": {lacking(time.Minute, checkpointed),
			"delete run-0; delete run-2; delete run-3; Pending: a lost pod could not be replaced; it waits to start " +
				"again from its checkpoint: exceeded quota"},
		"a malleable one goes on with the quota of those that go": {lacking(time.Minute, malleable),
			"create run-1; Running: shrunk to 16 GPUs"},
		"but not with fewer than it may": {lacking(time.Minute, func(o *Observed) {
			malleable(o)
			o.Pods = o.Pods[:1]
		}), "delete run-0; close lease-2 Failed; close lease-3 Failed; Failed: a lost pod could " +
			"not be replaced and the Run declares no checkpoint: exceeded quota"},
	} {
		if got := story(Decide(test.observed)); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
	if after := Decide(lacking(45*time.Second, nil)).After; after != 15*time.Second {
		t.Errorf("it is looked at again after %s", after)
	}
}

// Another Run has its turn at the quota: shards that wait go, those that run stay, and none is made.
func TestShardsThatWaitYield(t *testing.T) {
	o := sweep("")
	o.Pods[1].Spec.NodeName, o.Pods[1].Status.Phase = "", corev1.PodPending
	o.Leases = append(o.Leases[:1:1], o.Leases[2:]...)
	o.Pods = o.Pods[:3]
	o.Yields = true
	d := Decide(o)
	if len(d.Delete) != 1 || d.Delete[0].Pod != o.Pods[1] || d.Delete[0].If != Unbound || len(d.Create) > 0 {
		t.Errorf("deleted: %+v, created: %v", d.Delete, d.Create)
	}
}
