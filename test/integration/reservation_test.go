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

// TestAPlanForesees asks what would happen if a Run were submitted that does not fit, in worked example 1 after T2, and
// submits it: it is promised what was foreseen.
func TestAPlanForesees(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 0, 0, 0)
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
	same(t, "conflict set", []string{"j1 Lottery 32 0.25", "j2 Lottery 8 0.5", "j2 Shrink 16 0.25", "j3 Lottery 2 0.25"},
		conflicts(r))
	same(t, "conflict set foreseen", r.Status.ConflictSet, foreseen.ConflictSet)
	same(t, "deficit", int32(18), r.Status.Forecast.DeficitGPUs)
	same(t, "deficit foreseen", int32(18), foreseen.DeficitGPUs)
	same(t, "what would start at once", []string{"resources.totalGPUs: 12"}, foreseen.changes())
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
