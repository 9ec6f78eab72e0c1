package integration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// tenants are the Runs that hold a site's room when another comes.
var tenants = []string{"a", "b", "c"}

// contested makes a site of 48 GPUs that three Runs of 16 hold, of which b declares no checkpoint.
func contested(t *testing.T, c *cluster, name string) *site {
	t.Helper()
	s := namedSite(t, c, name, 1, 6, 0)
	for _, run := range tenants {
		s.fund(run, s.envelope("all", 16))
		change := checkpoint(time.Hour)
		if run == "b" {
			change = func(*rqv1.Run) {}
		}
		s.submit(run, 16, s.by(run), change)
	}
	for _, run := range tenants {
		s.await(run, rqv1.RunRunning, "bound 16 GPUs")
	}
	s.fund("wanted", s.envelope("all", 32))
	return s
}

// reached tells how a site has not come to a step of wanted's activation.
func (s *site) reached(step string) error {
	w, err := s.look(s.t.Context())
	if err != nil {
		return err
	}
	r := &rqv1.Reservation{}
	for i := range w.reservations {
		if w.reservations[i].Spec.RunRef.Name == "wanted" {
			r = &w.reservations[i]
		}
	}
	wanted := w.runs["wanted"]
	count := func(victims bool, is func(*corev1.Pod) bool) (n int) {
		for i := range w.pods {
			run := w.pods[i].Labels[rqv1.LabelRun]
			cut := slices.ContainsFunc(r.Status.Cuts, func(c rqv1.Cut) bool { return c.Run.Name == run })
			if is(&w.pods[i]) && (victims && cut || !victims && run == "wanted") {
				n++
			}
		}
		return n
	}
	leases := func(run func(string) bool) (open int) {
		for i := range w.leases {
			if !w.leases[i].Status.Closed && run(w.leases[i].Spec.RunRef.Name) {
				open++
			}
		}
		return open
	}
	held, revealed := leases(func(run string) bool { return run == "wanted" }), r.Status.Lottery != nil &&
		r.Status.Lottery.Nonce != ""
	all := leases(func(string) bool { return true })
	conditions := map[string]bool{
		"refused":  r.Name == "" && count(false, unschedulable) > 0,
		"reserved": r.Name != "" && r.Status.Lottery == nil,
		"committed": r.Status.Lottery != nil && r.Status.ActivatedAt == nil &&
			time.Since(r.Spec.EarliestStart.Time) > time.Second,
		"published": r.Status.ActivatedAt != nil && !revealed,
		"revealed":  revealed && count(true, noticed) == 0 && count(true, leaving) == 0,
		"noticed":   count(true, noticed) == 4 && count(true, leaving) == 0,
		"cut":       count(true, leaving) == 4,
		"left":      revealed && count(true, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }) == 0 && all == 6,
		"freed":     revealed && all == 2 && held == 0,
		"leased":    held == 4 && count(false, isBound) == 0,
		"bound":     count(false, isBound) == 4 && wanted.Status.Phase == rqv1.RunPending,
		"started":   wanted.Status.Phase == rqv1.RunRunning && r.Status.State == rqv1.ReservationActivating,
	}
	if !conditions[step] {
		return fmt.Errorf("%s has not come to %q: Run %s (%s), Reservation %+v", s.namespace, step, wanted.Status.Phase,
			wanted.Status.Message, r.Status)
	}
	return nil
}

func noticed(pod *corev1.Pod) bool {
	return hasCondition(pod, corev1.DisruptionTarget, corev1.ConditionTrue)
}
func leaving(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }
func isBound(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }
func unschedulable(pod *corev1.Pod) bool {
	return hasCondition(pod, corev1.PodScheduled, corev1.ConditionFalse)
}

func hasCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == kind && c.Status == status
	})
}

// TestKillBetweenStepsOfAnActivation kills the scheduler when it has come to each step of an activation and cannot take
// the next one, as many sites as there are steps at once: what had been published then is what is done, once.
func TestKillBetweenStepsOfAnActivation(t *testing.T) {
	t.Parallel()
	arguments := led("30s")              // so that no other turn comes while the sites come to their steps
	arguments["activationShield"] = "1h" // so that those who were cut do not cut Runs that started by it
	c := ownCluster(t, withoutElection, arguments)
	installHolds(t, c, heldWrites)
	steps := slices.Sorted(maps.Keys(heldWrites))
	var sites []*site
	for i, step := range steps {
		if i == 0 {
			(&site{cluster: c, t: t}).startScheduler()
		}
		s := contested(t, c, "step-"+step)
		if step == "cut" {
			for _, run := range tenants {
				s.finalize(run, "test.jobtree/hold")
			}
		}
		s.hold(step)
		sites = append(sites, s)
	}
	before := map[string]map[string]map[string]string{}
	for _, s := range sites {
		before[s.namespace] = map[string]map[string]string{}
		for _, run := range tenants {
			before[s.namespace][run] = s.uids(run)
		}
		s.submit("wanted", 32, s.by("wanted"))
	}
	for i, s := range sites {
		eventually(t, steps[i], func() error { return s.reached(steps[i]) })
	}
	if err := c.Scheduler.Kill(); err != nil {
		t.Fatal(err)
	}
	records := map[string]rqv1.Reservation{}
	for i, s := range sites {
		if err := s.reached(steps[i]); err != nil {
			t.Error(err)
		}
		if all, err := s.reservations("wanted"); err != nil {
			t.Fatal(err)
		} else if len(all) > 0 {
			records[s.namespace] = all[0]
		}
	}
	for _, s := range sites {
		s.hold("")
		for _, run := range tenants {
			s.finalize(run)
		}
	}
	sites[0].startScheduler()
	for _, s := range sites {
		s.completes(records[s.namespace], before[s.namespace])
	}
}

// completes waits until wanted has started, and checks that it did so by the record that there was, that what was cut
// was cut once, and that nobody else lost a pod.
func (s *site) completes(record rqv1.Reservation, before map[string]map[string]string) {
	s.t.Helper()
	s.await("wanted", rqv1.RunRunning, "bound 32 GPUs")
	r := s.awaitReservation("wanted", inState(rqv1.ReservationReleased))
	if record.Name != "" && record.Name != r.Name {
		s.t.Errorf("%s: it started by %s, not by %s", s.namespace, r.Name, record.Name)
	}
	if diff := altered(&record.Status, &r.Status); diff != "" {
		s.t.Errorf("%s: the record is not the one that was published:\n%s", s.namespace, diff)
	}
	if wrong := resolver.Verify(r); len(wrong) > 0 {
		s.t.Errorf("%s: the record does not verify: %v", s.namespace, wrong)
	}
	if cut := drawn(r); len(cut) != 2 || len(r.Status.Cuts) != 2 {
		s.t.Errorf("%s: it cut %v", s.namespace, r.Status.Cuts)
	}
	for run, pods := range before {
		switch got, err := s.get(run); {
		case err != nil:
			s.t.Error(err)
		case slices.Contains(drawn(r), run):
			if closed := s.closures(run)[rqv1.ClosedRandomPreempt]; closed != 2 {
				s.t.Errorf("%s: %d Leases of %s closed as cut, want 2", s.namespace, closed, run)
			}
		case !s.isCut(run):
			same(s.t, s.namespace+": pods of "+run, pods, s.uids(run))
			if got.Status.Phase != rqv1.RunRunning {
				s.t.Errorf("%s: Run %s, which nothing has cut, is %s", s.namespace, run, got.Status.Phase)
			}
		}
	}
	s.settled()
}

// isCut tells whether a Run is among the cuts of any Reservation.
func (s *site) isCut(run string) bool {
	w, err := s.look(s.t.Context())
	if err != nil {
		s.t.Error(errors.Join(errors.New("looking"), err))
		return true
	}
	return slices.ContainsFunc(w.reservations, func(r rqv1.Reservation) bool {
		return slices.ContainsFunc(r.Status.Cuts, func(c rqv1.Cut) bool { return c.Run.Name == run })
	})
}

// TestKillTheSchedulerWhileRunsAreCut kills the scheduler at random instants while several activations are under way:
// each completes with the draw that it has published, and nobody is hurt whom no Reservation has cut.
func TestKillTheSchedulerWhileRunsAreCut(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	arguments := led("2s")
	arguments["activationShield"] = "1h"
	c := ownCluster(t, withoutElection, arguments)
	(&site{cluster: c, t: t}).startScheduler()
	var sites []*site
	before := map[string]map[string]map[string]string{}
	for i := range 4 {
		s := contested(t, c, fmt.Sprintf("chaos-%d", i))
		before[s.namespace] = map[string]map[string]string{}
		for _, run := range tenants {
			before[s.namespace][run] = s.uids(run)
		}
		sites = append(sites, s)
	}
	activating := 0
	for i := range 8 {
		if i < len(sites) {
			sites[i].submit("wanted", 32, sites[i].by("wanted"))
		}
		sites[0].killAfter(time.Duration(random.IntN(1500)) * time.Millisecond)
		for _, s := range sites[:min(i+1, len(sites))] {
			if all, err := s.reservations("wanted"); err == nil && len(all) > 0 &&
				all[0].Status.State == rqv1.ReservationActivating {
				activating++
			}
		}
	}
	for _, s := range sites {
		s.completes(rqv1.Reservation{}, before[s.namespace])
	}
	t.Logf("8 kills, and %d times one of 4 activations was under way", activating)
}
