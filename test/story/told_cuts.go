package story

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// cutStories are of lotteries, and of whom they cut.
func cutStories() []Story {
	return []Story{
		{Name: "lottery-after-a-budget-cut", Args: soon("5s"), Play: lotteryAfterABudgetCut},
		{Name: "nobody-dies-in-vain", Args: soon("4s"), Play: nobodyDiesInVain},
		{Name: "cuts-are-paused", Args: soon("5s"), Alone: "cuts are paused for all, and the scheduler is killed",
			Play: cutsArePaused},
		{Name: "lost-node-after-the-lottery", Play: lostNodeAfterTheLottery},
	}
}

// Drawn returns the Runs that a Reservation's lottery ended, and to which widths it had others shrink.
func Drawn(r *rqv1.Reservation) (drawn []string, shrunk map[string]int32) {
	shrunk = map[string]int32{}
	for _, cut := range r.Status.Cuts {
		switch cut.Action {
		case rqv1.CutLottery:
			drawn = append(drawn, cut.Run.Name)
		case rqv1.CutShrink:
			shrunk[cut.Run.Name] = *cut.Width
		}
	}
	slices.Sort(drawn)
	return drawn, shrunk
}

// InDomain has the pods of a Run go to nodes of a domain.
func (s *Teller) InDomain(domain string) RunChange {
	return Templated(func(of *corev1.PodTemplateSpec) {
		of.Spec.NodeSelector = map[string]string{"fabric.domain": s.full(domain)}
	})
}

// lotteryAfterABudgetCut is worked example 1 to the end of T3: a Run that does not fit is promised a start, and others
// are shrunk or drawn for it when its turn comes.
func lotteryAfterABudgetCut(s *Teller) {
	s.Nodes("d", 18, WithGPUs(4))
	s.Fund("a", Envelope("all", 48))
	s.Fund("b", Envelope("all", 24))
	s.Submit("j1", 32, s.By("a"), Checkpointed(30*time.Minute))
	s.Says("j1", rqv1.RunRunning, "bound 32 GPUs")
	s.Submit("j2", 24, s.By("b"), Elastic(8, 24, 8))
	s.Says("j2", rqv1.RunRunning, "bound 24 GPUs")
	s.Submit("j3", 2, s.By("a"))
	s.Says("j3", rqv1.RunRunning, "bound 2 GPUs")
	s.EditBudget("a", func(b *rqv1.Budget) { b.Spec.Envelopes[0].Concurrency = 24 })
	s.Uses("a", rqv1.EnvelopeStatus{Name: "all", OwnedGPUs: 24, OverdraftGPUs: 10})
	s.EditBudget("b", func(b *rqv1.Budget) { b.Spec.Envelopes[0].Concurrency = 56 })

	s.Submit("j4", 32, s.By("b"))
	r := s.Promised("j4", rqv1.ReservationPending)
	s.Same("deficit", int32(18), r.Status.Forecast.DeficitGPUs)
	s.Same("confidence", rqv1.ConfidenceConservative, r.Status.Forecast.Confidence)
	s.Same("remedies", []string{"Shrink elastic runs by step size (16 GPUs)",
		"Run fair lottery if deficit remains (2 GPUs)"}, r.Status.Forecast.Remedies)
	s.Same("conflict set", []string{"j1 Lottery 32 0.25", "j2 Lottery 8 0.5", "j2 Shrink 16 0.25", "j3 Lottery 2 0.25"},
		Conflicts(r))
	s.Same("it is to start soon", true, r.Spec.EarliestStart.Sub(r.CreationTimestamp.Time) <= 6*time.Second)
	s.Until("the Run's own view of it", func() error {
		j4 := s.Run("j4").Status
		return differs([]any{r.Name, true}, []any{j4.PendingReservation, j4.EarliestStart != nil})
	})
	s.AtRisk("j1", r.Name, "0.25")

	s.Says("j4", rqv1.RunRunning, "bound 32 GPUs")
	r = s.Promised("j4", rqv1.ReservationReleased)
	s.Same("what is wrong with the record", 0, len(resolver.Verify(r)))
	drawn, shrunk := Drawn(r)
	switch who := strings.Join(drawn, " "); who {
	case "j1":
		s.Same("who is shrunk", map[string]int32{}, shrunk)
		s.Says("j2", rqv1.RunRunning, "bound 24 GPUs")
		s.ClosedAs("j1", rqv1.ClosedRandomPreempt, 8)
	case "j2":
		s.Says("j2", rqv1.RunFailed, "cut by lottery for Run")
		s.ClosedAs("j2", rqv1.ClosedRandomPreempt, 6)
	case "j3":
		s.Says("j3", rqv1.RunFailed, "cut by lottery for Run")
		s.Says("j2", rqv1.RunRunning, "shrunk to 8 GPUs")
		s.ClosedAs("j2", rqv1.ClosedShrink, 4)
	default:
		s.Errorf("%q ended", who)
	}
}

// ClosedAs waits until so many Leases of a Run have closed for a reason, whatever the others did.
func (s *Teller) ClosedAs(run string, reason rqv1.ClosureReason, leases int) {
	s.T.Helper()
	s.Until("how the Leases of "+run+" closed", func() error { return differs(leases, s.Closed(run)[string(reason)]) })
}

// nobodyDiesInVain is worked example 2: the lottery ends those whose room the Run needs, and takes a ticket back that
// it turns out not to need; then a node of another Run fails.
func nobodyDiesInVain(s *Teller) {
	s.Nodes("a", 18, WithGPUs(4))
	s.Nodes("b", 18, WithGPUs(4))
	gpus := map[string]int32{
		"ai": 120, "ai:rai": 64, "ai:rai:al": 48, "ai:rai:sys": 16, "ai:mm": 40, "ai:mm:vis": 28, "ai:mm:aud": 12,
	}
	for _, path := range sortedKeys(gpus) {
		s.Fund(path, Envelope("all", gpus[path]))
	}
	s.Submit("ra1", 64, s.By("ai:rai:al"), s.InDomain("a"), InPods(4), Spares(8))
	s.Says("ra1", rqv1.RunRunning, "bound 64 GPUs")
	s.Submit("ra2", 16, s.By("ai:rai:sys"), s.InDomain("b"), Elastic(16, 48, 8), Desires(16))
	s.Says("ra2", rqv1.RunRunning, "bound 16 GPUs")
	s.Submit("mm1", 48, s.By("ai:mm:vis"), s.InDomain("b"))
	s.Says("mm1", rqv1.RunRunning, "bound 48 GPUs")
	s.Submit("mm2", 4, s.By("ai:mm:aud"), s.InDomain("b"))
	s.Says("mm2", rqv1.RunRunning, "bound 4 GPUs")
	before := s.Traces("ra1", "mm2")

	s.Submit("mm3", 64, s.By("ai:mm:vis"))
	r := s.Promised("mm3", rqv1.ReservationPending)
	s.Same("deficit", int32(60), r.Status.Forecast.DeficitGPUs)
	s.Same("domain", s.full("b"), r.Spec.IntendedSlice.Domain["fabric.domain"])
	s.Same("conflict set", []string{"mm1 Lottery 48 1", "mm2 Lottery 4 0", "ra2 Lottery 16 1"}, Conflicts(r))
	s.Says("mm3", rqv1.RunRunning, "bound 64 GPUs")
	r = s.Promised("mm3", rqv1.ReservationReleased)
	drawn, _ := Drawn(r)
	s.Same("who ended", []string{"mm1", "ra2"}, drawn)
	s.Same("what is wrong with the record", 0, len(resolver.Verify(r)))
	s.ClosedAs("mm1", rqv1.ClosedRandomPreempt, 12)
	s.ClosedAs("ra2", rqv1.ClosedRandomPreempt, 4)
	s.Says("mm1", rqv1.RunFailed, "cut by lottery")
	s.Same("what was left alone", before, s.Traces("ra1", "mm2"))
	s.Sound()

	onB := s.Traces("mm2", "mm3")
	swapsOnA(s)
	s.Same("the Runs on B", onB, s.Traces("mm2", "mm3"))
}

// swapsOnA is T3 of worked example 2: shards use the GPUs under RA1's spares on A, a node of RA1 fails, and the shards
// on the spare that takes its place give way.
func swapsOnA(s *Teller) {
	s.Submit("sweep", 16, s.By("ai:mm:aud"), s.InDomain("a"), InPods(2), Opportunistic)
	on, before := s.Shards("sweep", 4), s.Pods("ra1")
	s.Lose(s.On("ra1-3"))
	s.Says("ra1", rqv1.RunRunning, "group 0 swapped to spare after node failure")
	spare := s.On("ra1-3")
	s.Same("shards that were where rank 3 is", 2, on[spare])
	delete(on, spare)
	s.Same("where shards run", on, s.Shards("sweep", 2))
	s.Borrowed("sweep", Leases{Open: 2, "ReclaimedBySpare": 2})
	s.Ledger("ra1", Leases{Open: 17, "NodeFailure": 1, "Swap": 1})
	s.untouched("ra1", before, "ra1-3")
}

// lostNodeAfterTheLottery is T4 of worked example 1, when J1 was drawn: J2 has 24 GPUs beside J3 and J4, somebody uses
// the room that is left, a node of J2 fails, and J2 shrinks by a step.
func lostNodeAfterTheLottery(s *Teller) {
	s.Nodes("d", 18, WithGPUs(4))
	s.Fund("a", Envelope("all", 48))
	s.Fund("b", Envelope("all", 56))
	s.Submit("j2", 24, s.By("b"), Elastic(8, 24, 8))
	s.Says("j2", rqv1.RunRunning, "bound 24 GPUs")
	s.Submit("j3", 2, s.By("a"))
	s.Submit("j4", 32, s.By("b"))
	s.Submit("rest", 14, s.By("a"), InPods(2))
	s.Says("j3", rqv1.RunRunning, "bound 2 GPUs")
	s.Says("j4", rqv1.RunRunning, "bound 32 GPUs")
	s.Says("rest", rqv1.RunRunning, "bound 14 GPUs")
	s.Sound()
	before, others := s.Pods("j2"), s.Traces("j3", "j4", "rest")
	s.Lose(s.On("j2-0"))
	s.Says("j2", rqv1.RunRunning, "shrunk to 16 GPUs")
	s.Ledger("j2", Leases{Open: 4, "NodeFailure": 1, "Shrink": 2})
	s.Sound()
	s.untouched("j2", before, "j2-0")
	s.Same("the other Runs", others, s.Traces("j3", "j4", "rest"))
}

// Brake has somebody say how the brakes on cuts stand, in the words of their ConfigMap.
func (s *Teller) Brake(data map[string]string) {
	s.T.Helper()
	said := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "jobtree-system", Name: brake.ConfigMap}}
	s.must(s.Change(said, func() { said.Data = data }))
}

// cutsArePaused pauses cuts past a date, kills the scheduler meanwhile, lets them go on, brakes by a word that is none,
// and calls a start off, which gets another date.
func cutsArePaused(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 100))
	s.Submit("first", 16, InPods(8), Checkpointed(time.Minute))
	s.Says("first", rqv1.RunRunning, "bound 16 GPUs")
	s.Brake(map[string]string{"paused": "true", "pausedBy": "ops", "pausedBecause": "testing"})
	s.Submit("second", 16, InPods(8), Checkpointed(time.Minute)) // which shields it from the first for as long
	r := s.Promised("second", rqv1.ReservationPending, "cuts are paused by ops", "testing")
	s.Later(r.Spec.EarliestStart.Sub(s.Now()) + time.Second)
	s.Kill()
	s.Never(5*time.Second, "nobody is cut while cuts are paused", s.Still("first", rqv1.RunRunning, "bound 16 GPUs"))
	r = s.Promised("second", rqv1.ReservationPending, "cuts are paused by ops", "testing")
	s.Same("its date has come", true, s.Now().After(r.Spec.EarliestStart.Time))
	s.Brake(nil)
	s.Says("second", rqv1.RunRunning, "bound 16 GPUs")
	s.Promised("second", rqv1.ReservationReleased)

	s.Brake(map[string]string{"paused": "perhaps"})
	off := s.Promised("first", rqv1.ReservationPending, "has entries that cannot be read")
	s.Brake(map[string]string{"paused": "perhaps",
		fmt.Sprintf("call-off.%s.%s", s.site.Namespace, off.Name): `{"because":"enough"}`})
	s.Until("it is to be called off", func() error {
		all := s.Reservations("first")
		for _, r := range all {
			if r.Name == off.Name && r.Status.State == rqv1.ReservationCanceled {
				off = r
				return nil
			}
		}
		return errors.New("it is not")
	})
	s.Same("it tells why: "+off.Status.CalledOff, true, strings.Contains(off.Status.CalledOff, "enough"))
	s.Brake(nil)
	s.Until("it is to have another date", func() error {
		all := s.Reservations("first")
		if all[len(all)-1].Name == off.Name {
			return errors.New("it has none yet")
		}
		r = all[len(all)-1]
		return nil
	})
	after, lead := r.CreationTimestamp.Sub(off.Status.EndedAt.Time), r.Spec.EarliestStart.Sub(r.CreationTimestamp.Time)
	if after < 4*time.Second || after > 10*time.Second || lead < 3*time.Second {
		s.Errorf("it has another date after %s, which comes in %s", after, lead)
	}
}
