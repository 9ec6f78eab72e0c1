package lifecycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// risks are so many of one probability, a minute apart.
func risks(n int, probability string) []rqv1.RunRisk {
	var out []rqv1.RunRisk
	for i := range n {
		out = append(out, rqv1.RunRisk{Reservation: fmt.Sprintf("ns/big%02d-r0", i),
			At: metav1.NewTime(noon.Add(time.Duration(i) * time.Minute)), Probability: probability,
			Cuts: []rqv1.RiskCut{{Action: rqv1.CutLottery, GPUs: 8, Probability: probability}}})
	}
	return out
}

// A Run's status lists the first 16 of its risks and says how many there are.
func TestThoseWhoMayCutARunAreListedUpToABound(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 16: 16, 17: 16, 64: 16} {
		all := risks(n, "0.5")
		run := &rqv1.Run{}
		seen := &facts{Observed: Observed{Objects: book.Objects{Run: run}, Look: book.Look{Risks: all}}}
		s := &situation{footing: footing{facts: seen, cuts: cuts{facts: seen}}, phase: rqv1.RunRunning}
		var next rqv1.RunStatus
		setReservation(&next, s)
		setAtRisk(conditions{run: run, next: &next}, s)
		if diff := cmp.Diff(rqv1.RunStatus{AtRisk: all[:want], AtRiskTotal: int32(n)},
			rqv1.RunStatus{AtRisk: next.AtRisk, AtRiskTotal: next.AtRiskTotal}); diff != "" {
			t.Errorf("of %d (-want +got):\n%s", n, diff)
		}
		if n > 1 {
			told := fmt.Sprintf("50 %% chance of being ended at 2026-03-01T12:00:00Z to make room for another Run (Reservation "+
				"ns/big00-r0); if it is ended it does not start again, since it declares no checkpoint; %d more Reservations "+
				"may cut the Run later", n-1)
			if diff := cmp.Diff(told, next.Conditions[0].Message); diff != "" {
				t.Errorf("of %d (-want +got):\n%s", n, diff)
			}
		}
	}
}

// What is listed stays while nothing has changed that is worth a write, whichever of many that are alike come first.
func TestRisksThatHardlyChangeAreNotWrittenAgain(t *testing.T) {
	was := &rqv1.RunStatus{AtRisk: risks(20, "0.5")[:rqv1.MostRisks], AtRiskTotal: 20}
	last := rqv1.MostRisks - 1
	for name, test := range map[string]struct {
		change func(all []rqv1.RunRisk) []rqv1.RunRisk
		writes bool
	}{
		"nothing": {func(all []rqv1.RunRisk) []rqv1.RunRisk { return all }, false},
		"a little likelier": {func(all []rqv1.RunRisk) []rqv1.RunRisk {
			all[3].Probability = "0.54"
			return all
		}, false},
		"likelier": {func(all []rqv1.RunRisk) []rqv1.RunRisk {
			all[3].Probability = "0.56"
			return all
		}, true},
		"another cut": {func(all []rqv1.RunRisk) []rqv1.RunRisk {
			all[3].Cuts[0].Action, all[3].Cuts[0].Width = rqv1.CutShrink, 8
			return all
		}, true},
		"one that is not listed is likelier": {func(all []rqv1.RunRisk) []rqv1.RunRisk {
			all[19].Probability = "1"
			return all
		}, false},
		"one that is not listed is gone": {func(all []rqv1.RunRisk) []rqv1.RunRisk { return all[:19] }, true},
		"one that was not listed comes first": {func(all []rqv1.RunRisk) []rqv1.RunRisk {
			first := all[19]
			first.At = all[0].At
			return append([]rqv1.RunRisk{first}, all[:19]...)
		}, true},
		"two on the border of one date change places": {func(all []rqv1.RunRisk) []rqv1.RunRisk {
			all[last+1].At = all[last].At
			all[last+1].Probability = "0.52"
			all[last], all[last+1] = all[last+1], all[last]
			return all
		}, false},
		"one on the border of one date is much likelier": {func(all []rqv1.RunRisk) []rqv1.RunRisk {
			all[last+1].At = all[last].At
			all[last+1].Probability = "0.6"
			all[last], all[last+1] = all[last+1], all[last]
			return all
		}, true},
	} {
		all := test.change(risks(20, "0.5"))
		want := was.AtRisk
		if test.writes {
			want = all[:rqv1.MostRisks]
		}
		if diff := cmp.Diff(want, steady(was, all)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// crowd is a conflict set of so many tickets, of which every third is likelier than the others.
func crowd(n int) []rqv1.Conflict {
	var out []rqv1.Conflict
	for i := range n {
		c := rqv1.Conflict{Run: rqv1.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("small%04d", i)}, Owner: "org:a",
			Action: rqv1.CutLottery, GPUs: 2, Probability: "0.25"}
		if i%3 == 2 {
			c.Probability = "1"
		}
		out = append(out, c)
	}
	return out
}

// Until it is fixed a conflict set is listed up to a bound, the likeliest entries, and how much it is in all; when it
// is fixed it is listed as a whole, with the digest of that, so that anybody can draw again.
func TestAConflictSetIsWholeOnceItIsFixed(t *testing.T) {
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: "uid"},
		Status: rqv1.RunStatus{Phase: rqv1.RunPending}}
	for _, n := range []int{0, 1, 256, 257, 900} {
		all := crowd(n)
		promise := &forecast.Promise{At: noon.Add(time.Minute), Conflicts: all}
		o := Observed{Objects: book.Objects{Run: run}, Now: noon, Look: book.Look{
			Prospect: book.Prospect{Promise: promise}, Commitments: map[types.UID]string{}}}
		r := newReservation(&o)
		o.Reservations = []*rqv1.Reservation{r}
		foreseen := Reserve(o).Reservation
		total := &rqv1.ConflictTotal{Total: int32(n), GPUs: int32(2 * n)}
		if n == 0 {
			total = nil
		}
		if diff := cmp.Diff(total, foreseen.Status.Conflicts); diff != "" {
			t.Errorf("of %d, foreseen (-want +got):\n%s", n, diff)
		}
		listed := foreseen.Status.ConflictSet
		if len(listed) != min(n, rqv1.MostForecastConflicts) {
			t.Errorf("of %d, %d are listed", n, len(listed))
		}
		certain := 0
		for i := range listed {
			if listed[i].Probability == "1" {
				certain++
			}
			if i > 0 && listed[i-1].Run.Name >= listed[i].Run.Name {
				t.Errorf("of %d, %s comes before %s", n, listed[i-1].Run.Name, listed[i].Run.Name)
			}
		}
		if want := min(n/3, rqv1.MostForecastConflicts); certain != want {
			t.Errorf("of %d, %d are listed that are certain, want %d", n, certain, want)
		}
		o.Promise, o.Reservations = nil, []*rqv1.Reservation{foreseen}
		o.Activation = &book.Activation{At: noon, Conflicts: all}
		fixed := Reserve(o).Reservation.Status
		if diff := cmp.Diff(rqv1.ReservationStatus{ConflictSet: all, Conflicts: total},
			rqv1.ReservationStatus{ConflictSet: fixed.ConflictSet, Conflicts: fixed.Conflicts}); diff != "" {
			t.Errorf("of %d, fixed (-want +got):\n%s", n, diff)
		}
		if diff := cmp.Diff(resolver.Digest(all), fixed.Lottery.ConflictSetDigest); diff != "" {
			t.Errorf("of %d, the digest (-want +got):\n%s", n, diff)
		}
	}
}
