package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// reservationOf is a Reservation of a Run, made a second after noon, with a date a quarter of an hour later.
func reservationOf(run *rqv1.Run, gpus int32, conflicts ...rqv1.Conflict) rqv1.Reservation {
	return rqv1.Reservation{
		ObjectMeta: metav1.ObjectMeta{Name: run.Name + "-r0", Namespace: run.Namespace, UID: types.UID(run.Name + "-r0-uid"), CreationTimestamp: after(time.Second)},
		Spec: rqv1.ReservationSpec{
			RunRef:          rqv1.NamespacedName{Namespace: run.Namespace, Name: run.Name},
			IntendedSlice:   &rqv1.IntendedSlice{Domain: map[string]string{"region": "us-west", "fabric.domain": "B"}, Nodes: []string{"b1", "b2", "b3", "b4", "b5", "b6"}},
			PayingEnvelopes: []rqv1.PayingEnvelope{{Budget: "rai", Envelope: "west-h100", GPUs: 96}, {Budget: "mm", Envelope: "pool", GPUs: 32}},
			EarliestStart:   after(time.Second + 15*time.Minute),
		},
		Status: rqv1.ReservationStatus{
			State: rqv1.ReservationPending,
			Forecast: &rqv1.Forecast{DeficitGPUs: gpus, Scope: "region=us-west,fabric.domain=B", Confidence: rqv1.ConfidenceConservative,
				Remedies: []string{"Drop spares in scope (32 GPUs)", "Shrink elastic Runs by steps (16 GPUs)"}},
			ConflictSet: conflicts,
			Lottery:     &rqv1.Lottery{Commitment: strings.Repeat("ab", 32), Odds: "exact"},
		},
	}
}

func conflict(action rqv1.CutAction, owner rqv1.Owner, name string, gpus int32, probability string) rqv1.Conflict {
	return rqv1.Conflict{Run: rqv1.NamespacedName{Namespace: "mm", Name: name}, Owner: owner, Action: action, GPUs: gpus, Probability: probability}
}

// promisedTo has a Run's status name its Reservation.
func promisedTo(run *rqv1.Run, r *rqv1.Reservation) {
	run.Status.PendingReservation, run.Status.EarliestStart = r.Name, &r.Spec.EarliestStart
}

func TestPlan(t *testing.T) {
	big := runOf("trainer-128", 128, 32, waits("InsufficientGPUs", "48 GPUs are short in domain B"))
	r := reservationOf(&big, 48, conflict(rqv1.CutDropSpare, "org:mm", "mm1", 32, "1"), conflict(rqv1.CutShrink, "org:mm:vision", "elastic", 16, "0.3333"))
	promisedTo(&big, &r)
	crowd := runOf("crowd", 128, 0, big.Status)
	var many []rqv1.Conflict
	for i := range 12 {
		many = append(many, conflict(rqv1.CutLottery, "org:mm", fmt.Sprintf("single-%02d", i), 4, "0.0834"))
	}
	crowded := reservationOf(&crowd, 48, many...)
	promisedTo(&crowd, &crowded)
	crowded.Status.Lottery.Odds = "sampled 400, within 0.05 at 95 %"
	activating := *r.DeepCopy()
	activating.Status.State, activating.Status.ActivatedAt = rqv1.ReservationActivating, ptr(metav1.NewMicroTime(noon))
	released := *r.DeepCopy()
	released.Status.State = rqv1.ReservationReleased
	unread := planOf(&big, nil, noon.Add(2*time.Second))
	unread.Unread = []string{`Reservation trainer-128-r0: User "bob" cannot get resource "reservations"`}
	threatened := runOf("trainer", 16, 8, runs(16))
	threatened.Status.AtRisk = []rqv1.RunRisk{{Reservation: "mm/big-r0", At: after(26 * time.Hour), Probability: "0.25"}}
	never := runOf("ring-40", 40, 40, waits("NeverFits", "a group needs 40 H100-80GB GPUs in one domain and at most 32 fit even when it is empty"))
	for name, c := range map[string]struct {
		answer planAnswer
		wide   bool
	}{
		"plan-reserved":   {planOf(&big, &r, noon.Add(2*time.Second)), false},
		"plan-crowd":      {planOf(&crowd, &crowded, noon.Add(20*time.Minute)), false},
		"plan-crowd-wide": {planOf(&crowd, &crowded, noon.Add(20*time.Minute)), true},
		"plan-activating": {planOf(&big, &activating, noon.Add(16*time.Minute)), false},
		"plan-released":   {planOf(&never, &released, noon), false},
		"plan-unread":     {unread, false},
		"plan-running":    {planOf(&threatened, nil, noon), false},
		"plan-new":        {planOf(ptr(runOf("new", 8, 0, rqv1.RunStatus{})), nil, noon), false},
	} {
		var text strings.Builder
		if err := writePlan(&text, c.answer, c.wide); err != nil {
			t.Fatal(err)
		}
		golden(t, name, text.String())
	}
	var text strings.Builder
	if err := inFormat("json", &text, planOf(&big, &r, noon.Add(2*time.Second))); err != nil {
		t.Fatal(err)
	}
	golden(t, "plan-json", text.String())
}

func TestTimeline(t *testing.T) {
	now := noon.Add(time.Minute)
	soon := runOf("soon", 64, 0, waits("InsufficientGPUs", "short by 8 GPUs"))
	soon.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: 8 * time.Minute}}
	later := runOf("a-name-that-takes-room", 4096, 0, waits("WindowClosed", "a window opens"))
	later.Spec.Owner = "org:ai:mm"
	due := runOf("due", 8, 0, waits("InsufficientGPUs", "short by 8 GPUs"))
	first, second, third := reservationOf(&soon, 8), reservationOf(&later, 0), reservationOf(&due, 8)
	second.Spec.EarliestStart, second.Status.Forecast.Confidence = after(24*time.Minute+10*time.Second), rqv1.ConfidenceWindowAligned
	third.Spec.EarliestStart, third.Status.State = after(30*time.Second), rqv1.ReservationActivating
	for run, r := range map[*rqv1.Run]*rqv1.Reservation{&soon: &first, &later: &second, &due: &third} {
		promisedTo(run, r)
	}
	never := runOf("ring-40", 40, 40, waits("NeverFits", "a group needs 40 GPUs in one domain and at most 32 fit"))
	fresh := runOf("fresh", 8, 0, rqv1.RunStatus{})
	fresh.CreationTimestamp = after(time.Minute)
	full := timeline{At: metav1.NewTime(now), Runs: []planAnswer{
		planOf(&due, &third, now), planOf(&soon, &first, now), planOf(&later, &second, now), planOf(&never, nil, now), planOf(&fresh, nil, now)}}
	dateless := timeline{At: full.At, Runs: full.Runs[3:], Unread: []string{"Reservations: no"}}
	for name, c := range map[string]struct {
		timeline
		palette
		width int
		wide  bool
	}{
		"timeline":          {full, ascii, 80, false},
		"timeline-wide":     {full, ascii, 80, true},
		"timeline-blocks":   {full, blocks, 120, false},
		"timeline-dateless": {dateless, ascii, 80, false},
	} {
		var text strings.Builder
		if err := writeTimeline(&text, c.timeline, c.palette, c.width, c.wide, c.wide); err != nil {
			t.Fatal(err)
		}
		golden(t, name, text.String())
	}
}

func TestAxis(t *testing.T) {
	const day = 24 * time.Hour
	for last, want := range map[time.Duration]time.Duration{
		-time.Second: time.Minute, 59 * time.Second: time.Minute, time.Minute: 2 * time.Minute, 15 * time.Minute: 20 * time.Minute,
		11 * time.Hour: 12 * time.Hour, 12 * time.Hour: day, 3 * day: 7 * day, 7 * day: 14 * day, 1000 * day: 1001 * day,
	} {
		if got := axisFor(last); got != want {
			t.Errorf("axisFor(%v) = %v, want %v", last, got, want)
		}
	}
}

func TestPercentAndCountdown(t *testing.T) {
	var got []string
	for _, p := range []string{"0", "1", "1.0", "0.25", "0.3333", "0.0834", "0.000001", "often"} {
		got = append(got, percent(p))
	}
	for _, d := range []time.Duration{-time.Second, 0, 999 * time.Millisecond, time.Second, time.Hour - time.Second, 90 * time.Minute, 50 * time.Hour} {
		got = append(got, countdown(after(d), noon))
	}
	want := []string{"0 %", "100 %", "100 %", "25 %", "33.33 %", "8.34 %", "0.0001 %", "0 %",
		"now", "now", "now", "in 1s", "in 59m59s", "in 90m", "in 2d2h"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
