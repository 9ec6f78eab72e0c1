package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// taking is a Run that takes a node of 8 GPUs.
func taking(name string, owner rqv1.Owner, from time.Time, works time.Duration) sim.Job {
	size := int32(8)
	return sim.Job{At: from, Works: works, Run: &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: rqv1.RunSpec{Owner: owner,
			Resources: rqv1.RunResources{GPUType: flavor, TotalGPUs: size, GPUsPerPod: &size}}}}
}

// refused lets Run brief begin after another, at ten past, with a maxDuration of five minutes that its ranks would
// outlast. At an instant something happens; it returns how late the Run is told to go, and whether it is.
func refused(t *testing.T, at time.Time, happens func(*sim.Cluster)) (late time.Duration, told bool) {
	t.Helper()
	const owner = "org:one"
	c := fleet(t, 1)
	c.SetBudget(&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "one", Generation: 1}, Spec: rqv1.BudgetSpec{
		Owner: owner, Envelopes: []rqv1.Envelope{{Name: "e", Flavor: flavor, Concurrency: 8}}}})
	before := taking("before", owner, noon, 24*time.Hour)
	brief := taking("brief", owner, noon.Add(time.Minute), 24*time.Hour)
	before.Run.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: 10 * time.Minute}}
	brief.Run.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: 5 * time.Minute}}
	due := noon.Add(15 * time.Minute)
	look := func(c *sim.Cluster) {
		for _, pod := range c.PodsOf("brief") {
			if _, goes := rank.GoesBy(pod); goes && !told {
				told, late = true, c.Now.Sub(due).Truncate(time.Second)
			}
		}
	}
	events := []sim.Event{{At: at, Do: happens}}
	for when := noon.Add(11 * time.Minute); when.Before(due.Add(time.Minute)); when = when.Add(time.Second / 4) {
		events = append(events, sim.Event{At: when, Do: look})
	}
	_ = c.Play([]sim.Job{before, brief}, events, due.Add(time.Minute))
	look(c)
	return late, told
}

// grows makes a Run so large that its status has something new to tell, and little room.
func grows(c *sim.Cluster) {
	run := c.Runs["brief"].DeepCopy()
	run.Labels = map[string]string{}
	for i := range 6000 {
		run.Labels[fmt.Sprint(strings.Repeat("a", 200), "/", i)] = ""
	}
	c.SetRun(run)
}

// TestNoRefusalPutsOffAnEnd: the pods of a Run whose maxDuration is over are told to go then, whatever of the other
// writes for it the API server refuses. A status that might yet be written is waited for a moment.
func TestNoRefusalPutsOffAnEnd(t *testing.T) {
	const moment = 12 * time.Second
	if late, told := refused(t, noon.Add(11*time.Minute), grows); late != 0 || !told {
		t.Errorf("without any: told to go: %t, %s late", told, late)
	}
	for name, kind := range map[string]sim.Kind{"statuses": sim.Statuses, "Reservations": sim.Reservations,
		"Services and guards": sim.Services, "Leases that close": sim.Closings} {
		for how, effect := range map[string]sim.Effect{"refused": sim.Refused, "too large": sim.TooLarge,
			"not written": sim.Away, "not answered": sim.Late} {
			most := time.Duration(0)
			if kind == sim.Statuses && effect == sim.Away {
				most = moment
			}
			late, told := refused(t, noon.Add(11*time.Minute), func(c *sim.Cluster) {
				c.Faults.Add(sim.Fault{Of: kind, Do: effect, Lasts: true})
				grows(c)
			})
			if !told || late < 0 || late > most {
				t.Errorf("%s are %s: told to go: %t, %s late", name, how, told, late)
			}
		}
	}
}

// TestARunWhoseReservationIsNotWritten starts and ends all the same.
func TestARunWhoseReservationIsNotWritten(t *testing.T) {
	for how, effect := range map[string]sim.Effect{"refused": sim.Refused, "too large": sim.TooLarge} {
		for when, at := range map[string]time.Time{"made": noon.Add(time.Second), "ended": noon.Add(5 * time.Minute)} {
			late, told := refused(t, at, func(c *sim.Cluster) {
				if waits := len(c.Reservations) > 0; waits != (when == "ended") {
					t.Errorf("there are %d Reservations at %s", len(c.Reservations), at)
				}
				c.Faults.Add(sim.Fault{Of: sim.Reservations, Do: effect, Lasts: true})
			})
			if !told || late != 0 {
				t.Errorf("it is %s when it should be %s: the Run is told to go: %t, %s late", how, when, told, late)
			}
		}
	}
}
