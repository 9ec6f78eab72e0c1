package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

func TestPlan(t *testing.T) {
	big := clitest.RunOf("trainer-128", 128, 32, clitest.Waits("InsufficientGPUs", "48 GPUs are short in domain B"))
	r := clitest.ReservationOf(&big, 48, clitest.Conflict(rqv1.CutDropSpare, "org:mm", "mm1", 32, "1"),
		clitest.Conflict(rqv1.CutShrink, "org:mm:vision", "elastic", 16, "0.3333"))
	clitest.PromisedTo(&big, &r)
	crowd := clitest.RunOf("crowd", 128, 0, big.Status)
	var many []rqv1.Conflict
	for i := range 12 {
		many = append(many, clitest.Conflict(rqv1.CutLottery, "org:mm", fmt.Sprintf("single-%02d", i), 4, "0.0834"))
	}
	crowded := clitest.ReservationOf(&crowd, 48, many...)
	clitest.PromisedTo(&crowd, &crowded)
	crowded.Status.Lottery.Odds = "sampled 400, within 0.05 at 95 %"
	activating := *r.DeepCopy()
	activating.Status.State, activating.Status.ActivatedAt = rqv1.ReservationActivating,
		clitest.Ptr(metav1.NewMicroTime(clitest.Noon))
	released := *r.DeepCopy()
	released.Status.State = rqv1.ReservationReleased
	unread := planOf(&big, nil, clitest.Noon.Add(2*time.Second))
	unread.Unread = []string{`Reservation trainer-128-r0: User "bob" cannot get resource "reservations"`}
	threatened := clitest.RunOf("trainer", 16, 8, clitest.Runs(16))
	threatened.Status.AtRisk = []rqv1.RunRisk{{Reservation: "mm/big-r0", At: clitest.After(26 * time.Hour),
		Probability: "0.25", Cuts: []rqv1.RiskCut{{Action: rqv1.CutLottery, GPUs: 16, Probability: "0.25"}}}}
	never := clitest.RunOf("ring-40", 40, 40,
		clitest.Waits("NeverFits", "a group needs 40 H100-80GB GPUs in one domain, but at most 32 fit even when it is empty"))
	poor := clitest.RunOf("poor", 16, 0, clitest.Poor())
	hunted := *threatened.DeepCopy()
	hunted.Status.AtRiskTotal = 24
	foreseen := *crowded.DeepCopy()
	foreseen.Status.Conflicts = &rqv1.ConflictTotal{Total: 900, GPUs: 3600}
	back := inLine(214, 300)
	for name, c := range map[string]struct {
		answer planAnswer
		wide   bool
	}{
		"plan-reserved":   {planOf(&big, &r, clitest.Noon.Add(2*time.Second)), false},
		"plan-crowd":      {planOf(&crowd, &crowded, clitest.Noon.Add(20*time.Minute)), false},
		"plan-crowd-wide": {planOf(&crowd, &crowded, clitest.Noon.Add(20*time.Minute)), true},
		"plan-activating": {planOf(&big, &activating, clitest.Noon.Add(16*time.Minute)), false},
		"plan-released":   {planOf(&never, &released, clitest.Noon), false},
		"plan-unread":     {unread, false},
		"plan-running":    {planOf(&threatened, nil, clitest.Noon), false},
		"plan-poor":       {planOf(&poor, nil, clitest.Noon), false},
		"plan-hunted":     {planOf(&hunted, nil, clitest.Noon), false},
		"plan-part":       {planOf(&crowd, &foreseen, clitest.Noon), false},
		"plan-part-wide":  {planOf(&crowd, &foreseen, clitest.Noon), true},
		"plan-in-line":    {planOf(back, nil, clitest.Noon), false},
		"plan-new":        {planOf(clitest.Ptr(clitest.RunOf("new", 8, 0, rqv1.RunStatus{})), nil, clitest.Noon), false},
	} {
		var text strings.Builder
		if err := writePlan(&text, c.answer, session.Form{Wide: c.wide}); err != nil {
			t.Fatal(err)
		}
		clitest.Golden(t, name, text.String())
	}
	var text strings.Builder
	if err := clitest.InFormat("json", &text, planOf(&big, &r, clitest.Noon.Add(2*time.Second))); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "plan-json", text.String())
	text.Reset()
	if err := clitest.InFormat("yaml", &text, planOf(back, nil, clitest.Noon)); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "plan-in-line-yaml", text.String())
}

// inLine is a Run that has so many older ones ahead of it.
func inLine(ahead, of int32) *rqv1.Run {
	run := clitest.RunOf("back", 8, 0, clitest.Waits("InsufficientGPUs", "8 GPUs are needed"))
	run.Status.Queue = &rqv1.RunQueue{Ahead: ahead, Of: of, At: clitest.After(-time.Minute)}
	return &run
}

func TestTimeline(t *testing.T) {
	now := clitest.Noon.Add(time.Minute)
	soon := clitest.RunOf("soon", 64, 0, clitest.Waits("InsufficientGPUs", "short by 8 GPUs"))
	soon.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: 8 * time.Minute}}
	later := clitest.RunOf("a-name-that-takes-room", 4096, 0, clitest.Waits("WindowClosed", "a window opens"))
	later.Spec.Owner = "org:ai:mm"
	due := clitest.RunOf("due", 8, 0, clitest.Waits("InsufficientGPUs", "short by 8 GPUs"))
	first, second, third := clitest.ReservationOf(&soon, 8), clitest.ReservationOf(&later, 0),
		clitest.ReservationOf(&due, 8)
	second.Spec.EarliestStart, second.Status.Forecast.Confidence = clitest.After(24*time.Minute+10*time.Second),
		rqv1.ConfidenceWindowAligned
	third.Spec.EarliestStart, third.Status.State = clitest.After(30*time.Second), rqv1.ReservationActivating
	for run, r := range map[*rqv1.Run]*rqv1.Reservation{&soon: &first, &later: &second, &due: &third} {
		clitest.PromisedTo(run, r)
	}
	never := clitest.RunOf("ring-40", 40, 40,
		clitest.Waits("NeverFits", "a group needs 40 GPUs in one domain and at most 32 fit"))
	fresh := clitest.RunOf("fresh", 8, 0, rqv1.RunStatus{})
	fresh.CreationTimestamp = clitest.After(time.Minute)
	full := timeline{At: metav1.NewTime(now), Runs: []planAnswer{
		planOf(&due, &third, now), planOf(&soon, &first, now), planOf(&later, &second, now), planOf(&never, nil, now),
		planOf(inLine(32, 40), nil, now), planOf(&fresh, nil, now)}}
	dateless := timeline{At: full.At, Runs: full.Runs[3:], Unread: []string{"Reservations: no"}}
	for name, c := range map[string]struct {
		timeline
		view.Palette
		session.Form
	}{
		"timeline":          {full, view.Ascii, session.Form{}},
		"timeline-wide":     {full, view.Ascii, session.Form{Wide: true}},
		"timeline-blocks":   {full, view.Blocks, session.Form{Columns: 120}},
		"timeline-dateless": {dateless, view.Ascii, session.Form{}},
	} {
		var text strings.Builder
		if err := writeTimeline(&text, c.timeline, c.Palette, c.Form, c.Wide); err != nil {
			t.Fatal(err)
		}
		clitest.Golden(t, name, text.String())
	}
}

func TestAxis(t *testing.T) {
	const day = 24 * time.Hour
	for last, want := range map[time.Duration]time.Duration{
		-time.Second: time.Minute, 59 * time.Second: time.Minute, time.Minute: 2 * time.Minute,
		15 * time.Minute: 20 * time.Minute,
		11 * time.Hour:   12 * time.Hour, 12 * time.Hour: day, 3 * day: 7 * day, 7 * day: 14 * day, 1000 * day: 1001 * day,
	} {
		if got := axisFor(last); got != want {
			t.Errorf("axisFor(%v) = %v, want %v", last, got, want)
		}
	}
}
