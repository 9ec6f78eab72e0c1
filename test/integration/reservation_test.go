package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// led shortens what a Reservation waits for.
func led(lead string) map[string]any {
	return map[string]any{"reservationLead": lead, "noticePeriod": "1s", "activationShield": "1s", "windowDelay": "1s",
		"gangDeadline": "30s"}
}

// checkpoint makes a Run safe to requeue.
func checkpoint(interval time.Duration) func(*rqv1.Run) {
	return func(r *rqv1.Run) {
		if r.Spec.Runtime == nil {
			r.Spec.Runtime = &rqv1.RunRuntime{}
		}
		r.Spec.Runtime.Checkpoint = &metav1.Duration{Duration: interval}
	}
}

// lasts bounds how long a Run takes.
func lasts(most time.Duration) func(*rqv1.Run) {
	return func(r *rqv1.Run) {
		if r.Spec.Runtime == nil {
			r.Spec.Runtime = &rqv1.RunRuntime{}
		}
		r.Spec.Runtime.MaxDuration = &metav1.Duration{Duration: most}
	}
}

// reservations returns the Reservations of a Run, in order of their turn.
func (s *site) reservations(run string) ([]rqv1.Reservation, error) {
	list := &rqv1.ReservationList{}
	if err := s.api.List(s.t.Context(), list, client.InNamespace(s.namespace),
		client.MatchingLabels{rqv1.LabelRun: run}); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(x, y rqv1.Reservation) int {
		return strings.Compare(fmt.Sprintf("%04d", len(x.Name))+x.Name, fmt.Sprintf("%04d", len(y.Name))+y.Name)
	})
	return list.Items, nil
}

// awaitReservation waits until the latest Reservation of a Run is as asked for.
func (s *site) awaitReservation(run string, as func(*rqv1.Reservation) error) *rqv1.Reservation {
	s.t.Helper()
	var out *rqv1.Reservation
	eventually(s.t, "the Reservation of "+s.namespace+"/"+run, func() error {
		all, err := s.reservations(run)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			got, _ := s.get(run)
			return fmt.Errorf("there is none; the Run is %s: %s", got.Status.Phase, got.Status.Message)
		}
		out = &all[len(all)-1]
		return as(out)
	})
	return out
}

// inState asks for a state.
func inState(state rqv1.ReservationState) func(*rqv1.Reservation) error {
	return func(r *rqv1.Reservation) error {
		if r.Status.State != state {
			return fmt.Errorf("it is %s (%s), want %s", r.Status.State, r.Status.Reason, state)
		}
		return nil
	}
}

// conflicts tells a conflict set in a line for each entry.
func conflicts(r *rqv1.Reservation) []string {
	var out []string
	for _, c := range r.Status.ConflictSet {
		out = append(out, fmt.Sprintf("%s %s %d %s", c.Run.Name, c.Action, c.GPUs, c.Probability))
	}
	slices.Sort(out)
	return out
}

// same fails the test unless two things are alike.
func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// drawn returns the Runs that a Reservation ended.
func drawn(r *rqv1.Reservation) []string {
	var out []string
	for _, cut := range r.Status.Cuts {
		if cut.Action == rqv1.CutLottery {
			out = append(out, cut.Run.Name)
		}
	}
	slices.Sort(out)
	return out
}

// shrunk returns what Reservation cuts did to a Run's width; 0 when it was not shrunk.
func shrunk(r *rqv1.Reservation, run string) int32 {
	for _, cut := range r.Status.Cuts {
		if cut.Action == rqv1.CutShrink && cut.Run.Name == run {
			return *cut.Width
		}
	}
	return 0
}

// TestLotteryAfterABudgetCut is worked example 1 to the end of T3: a Run that does not fit is promised a start, and
// others are shrunk or drawn for it when its turn comes.
func TestLotteryAfterABudgetCut(t *testing.T) {
	t.Parallel()
	s := newSite(t, ownCluster(t, withoutElection, led("5s")), 0, 0, 0)
	s.startScheduler()
	s.addDomain("d", 18, 4)
	s.fund("a", s.envelope("all", 48))
	s.fund("b", s.envelope("all", 24))
	s.submit("j1", 32, s.by("a"), checkpoint(30*time.Minute))
	s.await("j1", rqv1.RunRunning, "bound 32 GPUs")
	s.submit("j2", 24, s.by("b"), malleable(8, 24, 8))
	s.await("j2", rqv1.RunRunning, "bound 24 GPUs")
	s.submit("j3", 2, s.by("a"))
	s.await("j3", rqv1.RunRunning, "bound 2 GPUs")
	s.amend("a", func(e *rqv1.Envelope) { e.Concurrency = 24 })
	s.awaitEnvelopes("a", rqv1.EnvelopeStatus{Name: "all", OwnedGPUs: 24, OverdraftGPUs: 10})
	s.amend("b", func(e *rqv1.Envelope) { e.Concurrency = 56 })

	foreseen := s.planned(s.run("j4", 32, s.by("b")))
	s.submit("j4", 32, s.by("b"))
	r := s.awaitReservation("j4", inState(rqv1.ReservationPending))
	same(t, "deficit", int32(18), r.Status.Forecast.DeficitGPUs)
	same(t, "confidence", rqv1.ConfidenceConservative, r.Status.Forecast.Confidence)
	same(t, "remedies", []string{"Shrink elastic runs by step size (16 GPUs)",
		"Run fair lottery if deficit remains (2 GPUs)"}, r.Status.Forecast.Remedies)
	same(t, "conflict set", []string{"j1 Lottery 32 0.25", "j2 Lottery 8 0.5", "j2 Shrink 16 0.25", "j3 Lottery 2 0.25"},
		conflicts(r))
	same(t, "conflict set foreseen", r.Status.ConflictSet, foreseen.ConflictSet)
	same(t, "deficit foreseen", int32(18), foreseen.DeficitGPUs)
	same(t, "what would start at once", []string{"resources.totalGPUs: 12"}, foreseen.changes())
	if lead := r.Spec.EarliestStart.Sub(r.CreationTimestamp.Time); lead > 6*time.Second {
		t.Errorf("it is to start %s after it was made", lead)
	}
	eventually(t, "the Run's own view of it", func() error {
		j4, err := s.get("j4")
		if err == nil && (j4.Status.PendingReservation != r.Name || j4.Status.EarliestStart == nil) {
			err = fmt.Errorf("%+v", j4.Status)
		}
		return err
	})
	s.awaitRisk("j1", r.Name, "0.25")

	s.await("j4", rqv1.RunRunning, "bound 32 GPUs")
	r = s.awaitReservation("j4", inState(rqv1.ReservationReleased))
	if wrong := resolver.Verify(r); len(wrong) > 0 {
		t.Errorf("the record does not verify: %v", wrong)
	}
	switch who := strings.Join(drawn(r), " "); who {
	case "j1":
		same(t, "width that j2 is shrunk to", int32(0), shrunk(r, "j2"))
		s.await("j2", rqv1.RunRunning, "bound 24 GPUs")
		eventually(t, "how j1 ended", func() error { return s.closedAs("j1", rqv1.ClosedRandomPreempt, 8) })
	case "j2":
		s.await("j2", rqv1.RunFailed, "cut by lottery for Run")
		eventually(t, "how j2 ended", func() error { return s.closedAs("j2", rqv1.ClosedRandomPreempt, 6) })
	case "j3":
		s.await("j3", rqv1.RunFailed, "cut by lottery for Run")
		s.await("j2", rqv1.RunRunning, "shrunk to 8 GPUs")
		eventually(t, "how j2 was shrunk", func() error { return s.closedAs("j2", rqv1.ClosedShrink, 4) })
	default:
		t.Errorf("%q ended", who)
	}
	s.settled()
}

// outlook is what a script reads of what would happen if a Run were submitted.
type outlook struct {
	DeficitGPUs int32           `json:"deficitGPUs"`
	ConflictSet []rqv1.Conflict `json:"conflictSet"`
	Queue       *rqv1.RunQueue  `json:"queue"`
	Changes     []struct {
		What string `json:"what"`
	} `json:"changes"`
}

func (o *outlook) changes() []string {
	var out []string
	for i := range o.Changes {
		out = append(out, o.Changes[i].What)
	}
	return out
}

// planned asks what would happen if a Run were submitted, and asserts that it is not.
func (s *site) planned(run *rqv1.Run) *outlook {
	s.t.Helper()
	run.APIVersion, run.Kind = rqv1.GroupVersion.String(), "Run"
	text, err := json.Marshal(run)
	if err != nil {
		s.t.Fatal(err)
	}
	out := &outlook{}
	if err := json.Unmarshal([]byte(mustCommand(s.t, s.ControlPlane, string(text), "runs plan -f - -o json")),
		out); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.get(run.Name); !apierrors.IsNotFound(err) {
		s.t.Errorf("Run %s is there after it was only asked about: %v", run.Name, err)
	}
	return out
}

// closedAs is an error unless so many Leases of a Run closed for a reason.
func (s *site) closedAs(run string, reason rqv1.ClosureReason, leases int) error {
	if got := s.closures(run)[reason]; got != leases {
		return fmt.Errorf("%d Leases of %s closed as %s, want %d: %v", got, run, reason, leases, s.closures(run))
	}
	return nil
}

// awaitRisk waits until a Run says that a Reservation may cut it.
func (s *site) awaitRisk(run, reservation, probability string) {
	s.t.Helper()
	eventually(s.t, run+" at risk", func() error {
		got, err := s.get(run)
		if err != nil {
			return err
		}
		for _, risk := range got.Status.AtRisk {
			if risk.Reservation == s.namespace+"/"+reservation && risk.Probability == probability {
				return nil
			}
		}
		return fmt.Errorf("%+v", got.Status.AtRisk)
	})
}

// TestNobodyDiesInVain is worked example 2: the lottery ends those whose room the Run needs, and takes a ticket back
// that it turns out not to need; then a node of another Run fails.
func TestNobodyDiesInVain(t *testing.T) {
	t.Parallel()
	s := newSite(t, ownCluster(t, withoutElection, led("4s")), 0, 0, 0)
	s.startScheduler()
	s.addDomain("a", 18, 4)
	s.addDomain("b", 18, 4)
	for path, gpus := range map[string]int32{
		"ai": 120, "ai:rai": 64, "ai:rai:al": 48, "ai:rai:sys": 16, "ai:mm": 40, "ai:mm:vis": 28, "ai:mm:aud": 12,
	} {
		s.fund(path, s.envelope("all", gpus))
	}
	s.submit("ra1", 64, s.by("ai:rai:al"), s.on("a"), inPods(4), withSpares(8))
	s.await("ra1", rqv1.RunRunning, "bound 64 GPUs")
	s.submit("ra2", 16, s.by("ai:rai:sys"), s.on("b"), malleable(16, 48, 8), desiring(16))
	s.await("ra2", rqv1.RunRunning, "bound 16 GPUs")
	s.submit("mm1", 48, s.by("ai:mm:vis"), s.on("b"))
	s.await("mm1", rqv1.RunRunning, "bound 48 GPUs")
	s.submit("mm2", 4, s.by("ai:mm:aud"), s.on("b"))
	s.await("mm2", rqv1.RunRunning, "bound 4 GPUs")
	before := []map[string]string{s.versions("ra1"), s.versions("mm2")}

	s.submit("mm3", 64, s.by("ai:mm:vis"))
	r := s.awaitReservation("mm3", inState(rqv1.ReservationPending))
	same(t, "deficit", int32(60), r.Status.Forecast.DeficitGPUs)
	same(t, "domain", s.namespace+"-b", r.Spec.IntendedSlice.Domain["fabric.domain"])
	same(t, "conflict set", []string{"mm1 Lottery 48 1", "mm2 Lottery 4 0", "ra2 Lottery 16 1"}, conflicts(r))
	s.await("mm3", rqv1.RunRunning, "bound 64 GPUs")
	r = s.awaitReservation("mm3", inState(rqv1.ReservationReleased))
	same(t, "who ended", []string{"mm1", "ra2"}, drawn(r))
	if wrong := resolver.Verify(r); len(wrong) > 0 {
		t.Errorf("the record does not verify: %v", wrong)
	}
	eventually(t, "how mm1 ended", func() error { return s.closedAs("mm1", rqv1.ClosedRandomPreempt, 12) })
	eventually(t, "how ra2 ended", func() error { return s.closedAs("ra2", rqv1.ClosedRandomPreempt, 4) })
	s.await("mm1", rqv1.RunFailed, "cut by lottery")
	same(t, "what was left alone", before, []map[string]string{s.versions("ra1"), s.versions("mm2")})
	s.settled()

	mm3 := s.versions("mm3")
	s.swapsOnA()
	same(t, "the Runs on B", []map[string]string{before[1], mm3},
		[]map[string]string{s.versions("mm2"), s.versions("mm3")})
	s.settled()
}
