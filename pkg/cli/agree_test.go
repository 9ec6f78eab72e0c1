package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/explain"
	"github.com/davidlangworthy/jobtree/pkg/cli/list"
	"github.com/davidlangworthy/jobtree/pkg/cli/plan"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/risk"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// agreeing is how many random worlds are looked at, and looks how often each is.
const (
	agreeing = 8
	looks    = 12
)

// told is what one source says of a Run.
type told struct {
	Phase           rqv1.RunPhase
	Reason, Message string
	Start           string
	Risks           []string
}

// says adds the risks that a source lists.
func (s *told) says(risks []view.Risk) {
	for i := range risks {
		r := &risks[i]
		s.Risks = append(s.Risks, fmt.Sprintf("%s %s %s %v", r.Reservation, view.At(r.At), r.Probability, r.Cuts))
	}
}

// agreement is a world and those who tell of it.
type agreement struct {
	*sim.Cluster
	t      *testing.T
	server *clitest.Server
	seen   map[string]int // how often something was to be told
}

// The status of a Run, its conditions, its Reservation and what list, plan and explain print of it say the same at any
// moment at which the scheduler has nothing left to do, whatever has happened.
func TestAllThatIsToldOfARunAgrees(t *testing.T) {
	jobs := rapid.SliceOfN(rapid.Custom(drawJob), 5, 9)
	seen := map[string]int{}
	for seed := range agreeing {
		c := smallFleet(t)
		var events []sim.Event
		for i := range looks {
			events = append(events, sim.Event{At: clitest.Noon.Add(time.Duration(1+4*i) * time.Minute),
				Do: func(c *sim.Cluster) { (&agreement{Cluster: c, t: t, seen: seen}).check() }})
		}
		drawn := jobs.Example(seed)
		for i := range drawn {
			drawn[i].Run.Name = fmt.Sprintf("run%d", i)
		}
		_ = c.Play(drawn, events, clitest.Noon.Add(50*time.Minute)) // most of them have not ended by then
		if t.Failed() {
			t.Fatalf("in world %d", seed)
		}
	}
	for _, what := range []string{"waits", "has a date", "is at risk", "has lost by a cut"} {
		if seen[what] == 0 {
			t.Errorf("no Run %s in any world", what)
		}
	}
	t.Logf("%v", seen)
}

// smallFleet is a cluster of two domains of two nodes, and of two teams that may have three quarters of it.
func smallFleet(t *testing.T) *sim.Cluster {
	t.Helper()
	args, err := config.Parse([]byte("{reservationLead: 5m}"))
	if err != nil {
		t.Fatal(err)
	}
	c := sim.New(sim.Options{Args: args, Rules: lifecycle.RulesOf(args), Begin: clitest.Noon, Reserves: true,
		Witness: sim.Witness{Violated: func(format string, args ...any) { t.Fatalf(format, args...) }}})
	for i := range 4 {
		c.SetNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{
				"region": "r", "cluster": "c", "fabric.domain": fmt.Sprint("d", i/2), "gpu.flavor": "H100-80GB"}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}},
		})
	}
	for _, team := range []string{"a", "b"} {
		c.SetBudget(&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: team, Generation: 1}, Spec: rqv1.BudgetSpec{
			Owner: rqv1.Owner("org:" + team),
			Envelopes: []rqv1.Envelope{{Name: "any", Flavor: "H100-80GB", Concurrency: 16},
				{Name: "d0", Flavor: "H100-80GB", Concurrency: 8, Selector: map[string]string{"fabric.domain": "d0"}}},
		}})
	}
	return c
}

// drawJob is a Run of any kind.
func drawJob(t *rapid.T) sim.Job {
	size := rapid.SampledFrom([]int32{4, 8}).Draw(t, "pod")
	total := size * rapid.Int32Range(1, 3).Draw(t, "pods")
	run := &rqv1.Run{Spec: rqv1.RunSpec{Owner: rapid.SampledFrom([]rqv1.Owner{"org:a", "org:b"}).Draw(t, "owner"),
		Resources: rqv1.RunResources{GPUType: "H100-80GB", TotalGPUs: total, GPUsPerPod: &size},
		Runtime:   &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: 5 * time.Minute}}}}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		run.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: size, MaxTotalGPUs: total, StepGPUs: size}
	case 1:
		run.Spec.SparesPerGroup = &size
	case 2:
		run.Spec.Runtime.MaxDuration = &metav1.Duration{Duration: 90 * time.Minute}
	}
	return sim.Job{At: clitest.Noon.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "at")) * time.Minute), Run: run,
		Works: time.Duration(rapid.IntRange(10, 80).Draw(t, "works")) * time.Minute}
}

// check compares all that is told of all Runs now.
func (a *agreement) check() {
	var objects []client.Object
	for _, run := range a.Runs {
		objects = append(objects, run)
	}
	for _, r := range a.Reservations {
		objects = append(objects, r)
	}
	for _, l := range a.Leases {
		objects = append(objects, l)
	}
	a.server = clitest.NewServer(a.t, objects...)
	lines := map[string]string{}
	for _, line := range strings.Split(a.do(list.Command), "\n") {
		if name, _, found := strings.Cut(line, " "); found {
			lines[name] = line
		}
	}
	for name, run := range a.Runs {
		want := a.status(run)
		if diff := cmp.Diff(want, a.plan(name)); diff != "" {
			a.t.Errorf("at %s plan of %s (-status +told):\n%s", a.Now, name, diff)
		}
		if diff := cmp.Diff(want, a.explain(name)); diff != "" {
			a.t.Errorf("at %s explain of %s (-status +told):\n%s", a.Now, name, diff)
		}
		if news := view.NewsOf(run, a.Now); !strings.Contains(lines[name], news) ||
			!strings.Contains(lines[name], " "+view.StandingOf(run)+" ") {
			a.t.Errorf("at %s list says of %s %q, and not %q", a.Now, name, lines[name], news)
		}
		a.condition(run)
	}
	a.reservations()
}

// status is what a Run's status says.
func (a *agreement) status(run *rqv1.Run) told {
	out := told{Phase: run.Status.Phase}
	if run.Status.Phase == rqv1.RunPending {
		a.seen["waits"]++
		if c := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionStarted); c != nil {
			out.Reason, out.Message = c.Reason, c.Message
			if run.Status.Message != c.Message {
				a.t.Errorf("at %s %s says %q, and its condition %q", a.Now, run.Name, run.Status.Message, c.Message)
			}
			if r := run.Status.Refusal; r != nil && r.Reason != c.Reason {
				a.t.Errorf("at %s %s waits for %s, and its refusal is %s", a.Now, run.Name, c.Reason, r.Reason)
			}
		}
		if at := run.Status.EarliestStart; at != nil {
			a.seen["has a date"]++
			out.Start = view.At(*at)
		}
	}
	out.says(view.RisksOf(run, a.Now))
	if len(out.Risks) > 0 {
		a.seen["is at risk"]++
	}
	return out
}

// condition asserts that the condition AtRisk says what the status lists.
func (a *agreement) condition(run *rqv1.Run) {
	c := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionAtRisk)
	listed := len(run.Status.AtRisk) > 0
	switch {
	case c == nil && !listed:
	case c != nil && c.Reason == "CameTrue":
		a.seen["has lost by a cut"]++
	case c == nil || (c.Status == metav1.ConditionTrue) != listed:
		a.t.Errorf("at %s %s has %d risks, and its condition is %+v", a.Now, run.Name, len(run.Status.AtRisk), c)
	case listed && !strings.HasPrefix(c.Message, risk.Words(&run.Status.AtRisk[0])):
		a.t.Errorf("at %s %s says %q of %+v", a.Now, run.Name, c.Message, run.Status.AtRisk[0])
	}
}

// repeats reports whether the reason of a Reservation is what its Run says, after what is missing in its scope.
func repeats(r *rqv1.Reservation, message string) bool {
	before, same := strings.CutSuffix(r.Status.Reason, message)
	if f := r.Status.Forecast; same && f != nil && f.DeficitGPUs > 0 {
		scope := strings.Replace(fmt.Sprintf("cluster short by %d GPUs in scope", f.DeficitGPUs), " 1 GPUs", " 1 GPU", 1)
		before, same = strings.CutPrefix(before, scope)
		return same && (before == ": " || strings.HasPrefix(before, ", where ") && strings.HasSuffix(before, " free: "))
	}
	return same && before == ""
}

// reservations asserts that what Reservations say is what those say whom they are about.
func (a *agreement) reservations() {
	for name, r := range a.Reservations {
		run := a.Runs[r.Spec.RunRef.Name]
		if r.Status.State != rqv1.ReservationPending || run == nil {
			continue
		}
		if run.Status.PendingReservation != name || !repeats(r, run.Status.Message) {
			a.t.Errorf("at %s %s says %q, and its Run, which waits for %q, %q", a.Now, name, r.Status.Reason,
				run.Status.PendingReservation, run.Status.Message)
		}
		for i := range r.Status.ConflictSet {
			c := &r.Status.ConflictSet[i]
			victim := a.Runs[c.Run.Name]
			if c.Probability == "0" || !c.Action.Cuts() || victim == nil || victim.Status.Phase != rqv1.RunRunning {
				continue // it may be about to start
			}
			if !slices.ContainsFunc(victim.Status.AtRisk, func(risk rqv1.RunRisk) bool {
				return risk.Reservation == sim.Namespace+"/"+name
			}) {
				a.t.Errorf("at %s %s may cut %s, which says %+v", a.Now, name, victim.Name, victim.Status.AtRisk)
			}
		}
	}
}

// do runs a command now.
func (a *agreement) do(command clitest.Maker, args ...string) string {
	a.t.Helper()
	said := clitest.DoAt(a.t, a.server, a.Now, command, append(args, "-n", sim.Namespace)...)
	if said.Code != 0 {
		a.t.Fatalf("%v: code %d: %s", args, said.Code, said.Err)
	}
	return said.Out
}

func (a *agreement) plan(run string) told {
	var said struct {
		Phase           rqv1.RunPhase
		Reason, Message string
		EarliestStart   *metav1.Time
		AtRisk          []view.Risk
	}
	a.read(a.do(plan.Command, run, "-o", "json"), &said)
	out := told{Phase: said.Phase}
	if said.Phase == rqv1.RunPending {
		out.Reason, out.Message = said.Reason, said.Message
	}
	if said.EarliestStart != nil {
		out.Start = view.At(*said.EarliestStart)
	}
	out.says(said.AtRisk)
	return out
}

func (a *agreement) explain(run string) told {
	var said struct {
		Phase  rqv1.RunPhase
		Waits  *view.Waiting
		AtRisk []view.Risk
	}
	a.read(a.do(explain.Command, run, "-o", "json"), &said)
	out := told{Phase: said.Phase}
	if w := said.Waits; w != nil {
		out.Reason, out.Message = w.Reason, w.Message
		if w.EarliestStart != nil {
			out.Start = view.At(*w.EarliestStart)
		}
	}
	out.says(said.AtRisk)
	return out
}

func (a *agreement) read(text string, into any) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		a.t.Fatalf("%v in %s", err, text)
	}
}
