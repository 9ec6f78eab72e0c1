package integration

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	// soakSpan is for how long Runs arrive; JOBTREE_SOAK, a duration, has it take longer. A lead of 3 s stands for one of
	// 15 minutes, and so the span for fifty minutes.
	soakSpan = 10 * time.Second
	// soakRuns is how many arrive at least, as a machine that is busy lets them arrive more slowly, and soakMostRuns how
	// many arrive in a short soak while nothing but chance keeps it from having shown everything.
	soakRuns, soakMostRuns = 20, 60
	// soakLoad is what arrives in GPU-seconds per second and GPU of the fleet, of which there are soakGPUs.
	soakLoad = 1.3
	soakGPUs = 64
	// overdue is how long a date may have passed without anything having come of it: a decision, or another date. A soak
	// that goes on for long waits as for anything else.
	overdue = 15 * time.Second
)

// soakTeams are the owners of a soak. Their Budgets together are more than the fleet.
var soakTeams = []string{"red", "green", "blue", "grey"}

// TestSoak has Runs of every kind arrive at random, faster than the fleet can serve them, and then no more: each
// starts, or says why it never does, and nothing is left over. Reservations do not outlast their turn and no two Runs
// cut each other, all the time.
func TestSoak(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	arguments := led("3s")
	arguments["activationShield"], arguments["ledgerRetention"] = "2s", "1m"
	s := newSite(t, ownCluster(t, withoutElection, arguments), 2, soakGPUs/2/8, 0)
	s.startScheduler()
	for _, team := range soakTeams {
		s.fund(team, s.envelope("all", soakGPUs*3/4, s.lends(8, soakTeams...), func(e *rqv1.Envelope) {
			e.Sharing = rqv1.SharingNone
		}))
	}
	hopeless := map[string]string{"huge": "NeverFits", "poor": "NoBudget", "dear": "InsufficientBudget"}
	s.submit("huge", soakGPUs, s.by("red"), inGroups(soakGPUs), inPods(8))
	s.submit("poor", 8, s.by("nobody"))
	s.submit("dear", soakGPUs*3/4+8, s.by("blue"), inPods(8))

	long := annotated("pod-complete.stage.kwok.x-k8s.io/delay", "25s")
	s.submit("elastic", 32, s.by("red"), inPods(4), malleable(8, 32, 4), checkpoint(time.Minute), long)
	s.submit("guarded", 16, s.by("green"), inPods(4), inGroups(8), withSpares(4), checkpoint(time.Minute), long)
	s.await("elastic", rqv1.RunRunning, "bound 32 GPUs")
	s.await("guarded", rqv1.RunRunning, "bound 16 GPUs")
	span := soak(soakSpan)
	arrived, latest := s.arrive(random, span), time.Duration(0)
	for arrived.next() {
		late, err := s.passing()
		if err != nil {
			t.Fatal(err)
		}
		latest = max(latest, late)
	}
	err := waitFor(t, "everything", span+2*patience, func() error {
		late, err := s.passing()
		latest = max(latest, late)
		return errors.Join(err, s.drained(hopeless))
	})
	s.report(arrived.submitted, latest)
	if err != nil {
		t.Fatal(err)
	}
	for run, reason := range hopeless {
		s.awaitRefusal(run, reason)
	}
	s.settled()
}

// arrivals submits Runs until a time, at random instants.
type arrivals struct {
	s         *site
	random    *rand.Rand
	until     time.Time
	submitted int
}

func (s *site) arrive(random *rand.Rand, span time.Duration) *arrivals {
	return &arrivals{s: s, random: random, until: time.Now().Add(span)}
}

// next waits for the next Run to arrive and submits it; false when none arrives any more.
func (a *arrivals) next() bool {
	if time.Now().After(a.until) && a.submitted >= soakRuns && (a.submitted >= soakMostRuns || a.s.cutInAllWays()) {
		return false
	}
	gpus := []int32{4, 8, 8, 16, 16, 24, 32}[a.random.IntN(7)]
	lasts := time.Duration(2000+a.random.IntN(8000)) * time.Millisecond
	a.s.submit(fmt.Sprintf("run-%d", a.submitted), gpus, a.kind(gpus, lasts)...)
	a.submitted++
	wait := time.Duration(2 * a.random.Float64() * float64(gpus) * float64(lasts) / (soakLoad * soakGPUs))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	<-timer.C
	return true
}

// cutInAllWays reports whether there has been a cut of each action.
func (s *site) cutInAllWays() bool {
	w, err := s.look(s.t.Context())
	seen := map[rqv1.CutAction]bool{}
	if err == nil {
		for i := range w.reservations {
			for _, cut := range w.reservations[i].Status.Cuts {
				seen[cut.Action] = true
			}
		}
	}
	return seen[rqv1.CutDropSpare] && seen[rqv1.CutShrink] && seen[rqv1.CutLottery]
}

// kind makes a Run one of every kind there is.
func (a *arrivals) kind(gpus int32, takes time.Duration) []func(*rqv1.Run) {
	team := soakTeams[a.random.IntN(len(soakTeams))]
	out := []func(*rqv1.Run){a.s.by(team), inPods(4), annotated("pod-complete.stage.kwok.x-k8s.io/delay", takes.String())}
	one := func(in int) bool { return a.random.IntN(in) == 0 }
	switch {
	case gpus >= 16 && one(2):
		out = append(out, malleable(gpus/4/4*4, gpus, 4))
	case gpus >= 16 && one(2):
		out = append(out, inGroups(gpus/2))
	}
	if one(3) {
		out = append(out, withSpares(4))
	}
	if !one(3) {
		// One that is cut begins anew, so that a shorter interval could have two of them cut each other for ever.
		out = append(out, checkpoint(takes+time.Duration(a.random.Int64N(int64(takes)))))
	}
	if one(3) {
		out = append(out, lasts(takes+3*time.Second))
	}
	if sponsor := soakTeams[a.random.IntN(len(soakTeams))]; sponsor != team && one(2) {
		out = append(out, a.s.from(0, sponsor))
	}
	return out
}

// overdue is how late something may be that has a date.
func (s *site) overdue() time.Duration {
	if isSoak() {
		return patience
	}
	return time.Duration(float64(overdue) * s.canary.worst())
}

// passing checks what must hold at every instant, and returns by how much the date of some Reservation has passed.
func (s *site) passing() (late time.Duration, err error) {
	w, err := s.look(s.t.Context())
	if err != nil {
		return 0, err
	}
	s.ledger.mutex.Lock()
	wrong := slices.Concat(s.ledger.wrong, w.audited("I1", "I4", "I6"), w.feuds())
	s.ledger.mutex.Unlock()
	for i := range w.reservations {
		r := &w.reservations[i]
		if r.Ended() || r.Status.State == rqv1.ReservationActivating {
			continue
		}
		past := time.Since(r.Spec.EarliestStart.Time)
		if late = max(late, past); past > s.overdue() {
			wrong = append(wrong, fmt.Sprintf("the date of Reservation %s has passed by %s: %+v", r.Name, past, r.Status))
		}
	}
	if len(wrong) > 0 {
		s.t.Errorf("\n  %s", strings.Join(wrong, "\n  "))
		return late, errors.New("see above")
	}
	return late, nil
}

// drained tells which Runs have neither ended nor are among those that never start.
func (s *site) drained(hopeless map[string]string) error {
	w, err := s.look(s.t.Context())
	if err != nil {
		return err
	}
	var left []string
	for _, name := range slices.Sorted(maps.Keys(w.runs)) {
		run := w.runs[name]
		ended := run.Status.Phase == rqv1.RunCompleted ||
			run.Status.Phase == rqv1.RunFailed && (strings.Contains(run.Status.Message, "cut by lottery") ||
				strings.Contains(run.Status.Message, "maxDuration"))
		if hopeless[name] == "" && !ended {
			left = append(left, fmt.Sprintf("%s %s: %s", name, run.Status.Phase, run.Status.Message))
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%d Runs have not ended:\n  %s", len(left), strings.Join(left, "\n  "))
	}
	return nil
}

// report logs what has happened, so that it shows when the soak has shown nothing; and fails the test when it has not.
func (s *site) report(submitted int, latest time.Duration) {
	s.t.Helper()
	w, err := s.look(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	phases, states, cuts := map[rqv1.RunPhase]int{}, map[rqv1.ReservationState]int{}, map[rqv1.CutAction]int{}
	activations, draws, most, canceled := 0, 0, map[string]int{}, map[string]int{}
	for _, run := range w.runs {
		phases[run.Status.Phase]++
		if meta.IsStatusConditionTrue(run.Status.Conditions, rqv1.ConditionAtRisk) {
			s.t.Errorf("Run %s is %s and at risk", run.Name, run.Status.Phase)
		}
	}
	for i := range w.reservations {
		r := &w.reservations[i]
		states[r.Status.State]++
		if r.Status.State == rqv1.ReservationCanceled {
			canceled[strings.Map(func(c rune) rune {
				if c >= '0' && c <= '9' {
					return -1
				}
				return c
			}, r.Status.Reason)]++
		}
		if r.Status.ActivatedAt != nil {
			activations++
			draws += len(r.Status.Lottery.Draws)
		}
		for _, cut := range r.Status.Cuts {
			cuts[cut.Action]++
			most[cut.Run.Name]++
		}
	}
	starts, err := s.counters(s.t.Context(), s.cluster.Scheduler, "jobtree_admission_duration_seconds_count")
	s.t.Logf("%d Runs: %v; starts %v (%v); %d Reservations: %v, canceled as %v; %d activations, %d draws, cuts %v, "+
		"at most %d of one Run; dates passed by %s", submitted, phases, starts, err, len(w.reservations), states, canceled,
		activations, draws, cuts, slices.Max(append(slices.Collect(maps.Values(most)), 0)), latest)
	if activations < 3 || draws == 0 || cuts[rqv1.CutShrink] == 0 || cuts[rqv1.CutDropSpare] == 0 {
		tell := s.t.Log // in seconds there may be none by chance
		if isSoak() {
			tell = s.t.Error
		}
		tell("there was too little of it: the soak has shown nothing")
	}
}
