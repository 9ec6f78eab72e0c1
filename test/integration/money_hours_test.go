package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// everSpent adds up what the site's Leases spent of an envelope, from what was ever seen of them. It is an error while
// one of them is open.
func (s *site) everSpent(payer, envelope string) (budget.Spend, error) {
	s.ledger.mutex.Lock()
	defer s.ledger.mutex.Unlock()
	sum := budget.Spend(0)
	for _, lease := range s.ledger.leases[s.namespace] {
		if lease.Spec.Payer.Budget != payer || lease.Spec.PaidByEnvelope != envelope {
			continue
		}
		if !lease.Status.Closed {
			return 0, fmt.Errorf("Lease %s is open", lease.Name)
		}
		rate, err := budget.ParseRate(lease.Spec.Payer.Rate)
		if err != nil {
			return 0, err
		}
		seconds := lease.Status.Ended.Unix() - lease.Spec.Start.Unix()
		sum += budget.Spend(int64(lease.Spec.Slice.Nodes[0].GPUs) * int64(rate) * seconds)
	}
	return sum, nil
}

// lasting gives a Run a maxDuration.
func lasting(d time.Duration) func(*rqv1.Run) {
	return func(r *rqv1.Run) { r.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: d}} }
}

// hours bounds an envelope's GPU-hours.
func hours(most int64) func(*rqv1.Envelope) {
	return func(e *rqv1.Envelope) { e.MaxGPUHours = &most }
}

// TestGPUHoursAhead has a Budget of one GPU-hour: a Run must be paid for until its maxDuration ends it, or for its next
// hour, and nothing that is promised to one is promised to another.
func TestGPUHoursAhead(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 0)
	s.fund("team", s.envelope("all", 16, hours(1)))
	s.submit("endless", 2, s.by("team"), inPods(2))
	s.awaitRefusal("endless", "InsufficientGPUHours", "short by 2 of 2 GPUs",
		"maxGPUHours: 1.00000 of 1.00000 GPU-hours left")
	s.submit("short", 4, s.by("team"), inPods(4), lasting(10*time.Minute))
	s.await("short", rqv1.RunRunning, "bound 4 GPUs")
	s.submit("second", 4, s.by("team"), inPods(4), lasting(10*time.Minute))
	s.awaitRefusal("second", "InsufficientGPUHours", "of 1.00000 GPU-hours left")
	s.submit("small", 2, s.by("team"), inPods(2), lasting(5*time.Minute))
	s.await("small", rqv1.RunRunning, "bound 2 GPUs")
	s.removeRun("short")
	s.await("second", rqv1.RunRunning, "bound 4 GPUs")
	s.amend("team", func(e *rqv1.Envelope) { e.MaxGPUHours = ptr.To[int64](4) })
	s.await("endless", rqv1.RunRunning, "bound 2 GPUs")
	s.settled()
	for _, run := range []string{"endless", "second", "small"} {
		s.removeRun(run)
	}
	s.awaitGone("short", "endless", "second", "small")
	s.awaitSpent("team")
}

// TestGPUHoursSpent has a Run spend the last GPU-hour: it goes on in overdraft, everybody is told, nothing new is paid
// for, and a new window starts fresh.
func TestGPUHoursSpent(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 0, 0, 0)
	s.addDomain("d", 5, 256)
	s.fund("team", s.envelope("all", 2000, hours(5000)))
	s.submit("burning", 1024, s.by("team"), inPods(256))
	s.await("burning", rqv1.RunRunning, "bound 1024 GPUs")
	before := s.versions("burning")
	s.amend("team", hours(1)) // which 1024 GPUs spend within four seconds
	s.awaitBudgetCondition("team", rqv1.ConditionOverdrawn, metav1.ConditionTrue, "GPUHoursSpent")
	s.awaitOverdraft("burning", metav1.ConditionTrue)
	s.awaitFunding("burning", 0, s.sponsor("team", 1024, "overdraft"))
	s.awaitEnvelopes("team", rqv1.EnvelopeStatus{Name: "all", OverdraftGPUs: 1024})
	s.submit("new", 1, s.by("team"))
	s.awaitRefusal("new", "InsufficientGPUHours", "maxGPUHours: 0.00000 of 1.00000 GPU-hours left")
	if status, err := s.statusOf("team"); err != nil || status.Envelopes[0].GPUHours.Left != "0.00000" {
		t.Errorf("%v, GPU-hours %+v", err, status.Envelopes[0].GPUHours)
	}
	if diff := cmp.Diff(before, s.versions("burning")); diff != "" {
		t.Errorf("pods and Leases were touched: %s", diff)
	}
	s.settled()

	s.removeRun("burning")
	s.awaitGone("burning")
	s.awaitBudgetCondition("team", rqv1.ConditionOverdrawn, metav1.ConditionFalse, "WithinLimits")
	s.awaitSpent("team")
	s.awaitRefusal("new", "InsufficientGPUHours", "maxGPUHours: 0.00000 of 1.00000 GPU-hours left")
	s.amend("team", func(e *rqv1.Envelope) { e.Start = fromNow(0) })
	s.await("new", rqv1.RunRunning, "bound 1 GPUs")
	s.awaitEnvelopes("team", rqv1.EnvelopeStatus{Name: "all", OwnedGPUs: 1})
	s.settled()
}
