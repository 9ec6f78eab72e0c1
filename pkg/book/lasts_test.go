package book_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// lasting bounds a Run's time.
func lasting(d time.Duration) func(*rqv1.RunSpec) {
	return func(s *rqv1.RunSpec) { s.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: d}} }
}

// hours bounds the GPU-hours of a Budget.
func (w *world) hours(budget string, most int64) {
	b := w.Budgets[budget].DeepCopy()
	b.Generation += 1000
	b.Spec.Envelopes[0].MaxGPUHours = &most
	w.SetBudget(b)
}

// amend edits the spec of a Run.
func (w *world) amend(name string, edit func(*rqv1.RunSpec)) {
	run := w.Runs[name].DeepCopy()
	run.Generation++
	edit(&run.Spec)
	w.SetRun(run)
}

// began returns when a Run started.
func (w *world) began(name string) time.Time {
	for _, c := range w.Runs[name].Status.Conditions {
		if c.Type == rqv1.ConditionStarted {
			return c.LastTransitionTime.Time
		}
	}
	w.t.Fatalf("%s has not started", name)
	return time.Time{}
}

// What joins a Run late ends with it, and is asked to be paid for no longer: 8 GPUs for 10 hours are 80 GPU-hours, and
// one more pod for the last of them is 8.
func TestLatecomersArePaidForUntilTheRunEnds(t *testing.T) {
	for name, hurt := range map[string]func(*world){
		"a replacement": func(w *world) { w.RemoveNode(w.on("run0-0")) },
		"a cohort":      func(w *world) { w.desire("run0", 16) },
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.guarded(3, 1, 0, elastic(1, 1), upTo(1), func(s *rqv1.RunSpec) {
					s.Malleable.DesiredTotalGPUs = ptr.To[int32](8)
				}, lasting(10*time.Hour))
				w.setBudget("a", "org:a", 16)
				w.hours("a", 90)
				end := w.began("run0").Add(10 * time.Hour)
				w.Pass(w.began("run0").Add(9 * time.Hour).Sub(w.Now))
				hurt(w)
				w.settle()
				w.running("run0", "although what is left of its time is paid for")
				late := 0
				for _, lease := range w.OpenLeases() {
					if lease.Spec.Until == nil || lease.Spec.Reason != rqv1.ReasonStart && !lease.Spec.Until.Time.Equal(end) {
						w.t.Fatalf("Lease %s (%s) ends at %v, its Run at %v", lease.Name, lease.Spec.Reason, lease.Spec.Until, end)
					}
					if lease.Spec.Start.After(w.began("run0").Add(time.Hour)) {
						late++
					}
				}
				if late != 1 {
					w.t.Fatalf("%d Leases are opened late, want 1: %s", late, w.describe("run0"))
				}
			})
		})
	}
}

// A Run that is edited while it starts, before or after its pods have their Leases, starts under its new terms alone.
func TestAnEditDuringAStartIsPlannedAnew(t *testing.T) {
	edits := map[string]struct {
		edit func(*rqv1.RunSpec)
		want func(l *rqv1.Lease) bool
	}{
		"owner": {func(s *rqv1.RunSpec) { s.Owner = "org:b" },
			func(l *rqv1.Lease) bool { return l.Spec.Owner == "org:b" && l.Spec.Payer.Budget == "b" }},
		"maxDuration": {lasting(time.Hour),
			func(l *rqv1.Lease) bool {
				return l.Spec.Until != nil && l.Spec.Until.Sub(l.Spec.Start.Time) == time.Hour
			}},
	}
	for name, c := range edits {
		for bound := range 3 { // pods that have their Leases when the Run is edited
			t.Run(name, func(t *testing.T) {
				tell(t, func(w *world) {
					w.addNode("n0", "d0")
					w.setBudget("a", "org:a", 8)
					w.setBudget("b", "org:b", 8)
					w.submit("run0", "org:a", 1, 2, 4)
					w.reconcile("run0")
					w.place("run0-0")
					w.place("run0-1")
					for i := range bound {
						w.Bind(w.pod([]string{"run0-0", "run0-1"}[i]), sim.Written)
					}
					w.amend("run0", c.edit)
					w.settle()
					w.running("run0", "although it fits and can be paid for")
					for _, lease := range w.OpenLeases() {
						if !c.want(lease) {
							w.t.Fatalf("Lease %s of %s is paid by %v until %v", lease.Name, lease.Spec.Owner, lease.Spec.Payer,
								lease.Spec.Until)
						}
					}
					w.checkSettled()
				})
			})
		}
	}
}

// A rank that is replaced is as old as its Run: it is the younger Run that becomes overdraft.
func TestAReplacementKeepsItsAge(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(3, 1, 0)
		w.setBudget("a", "org:a", 16)
		w.Pass(time.Hour)
		w.submit("young", "org:a", 1, 1, 8)
		w.settle()
		w.running("young", "although it fits")
		w.Pass(time.Hour)
		w.RemoveNode(w.on("run0-0"))
		w.settle()
		w.running("run0", "although a node is free")
		w.setBudget("a", "org:a", 8)
		for _, b := range []string{"as it is", "after a restart"} {
			w.Book.Budgets.RefreshBudgets(w.Now)
			for _, lease := range w.OpenLeases() {
				over := w.Book.Overdraft(named(lease))
				if young := lease.Spec.RunRef.Name == "young"; young != (over == 8) {
					w.t.Fatalf("%s: of %s, admitted %v, %d GPUs are overdraft", b, lease.Name, lease.Spec.Admitted, over)
				}
			}
			w.crash()
		}
	})
}

// An opportunistic Run is promised nothing, also when it is asked for one of its pods that has been turned down.
func TestOpportunisticRunsAreNotPromisedAnything(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 8)
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 0, func(s *rqv1.RunSpec) {
			s.Opportunistic, s.SparesPerGroup = true, nil
		})
		w.submit("big", "org:a", 1, 1, 8)
		w.settle()
		w.Book.Turn(w.pod("run0-0"), w.Now)
		if p := w.Book.Prospect(w.Runs["run0"].UID).Promise; p != nil {
			w.t.Fatalf("an opportunistic Run is promised %+v", p)
		}
	})
}

// The flavor or the selector of an envelope, and the labels of a node, may come to be others than those of what it pays
// for.
func TestWhatIsOutOfAnEnvelopesReachIsOverdraft(t *testing.T) {
	for name, change := range map[string]func(*world){
		"flavor": func(w *world) { w.edit("a", func(e *rqv1.Envelope) { e.Flavor = "A100" }) },
		"selector": func(w *world) {
			w.edit("a", func(e *rqv1.Envelope) { e.Selector = map[string]string{"region": "other"} })
		},
		"labels": func(w *world) {
			w.edit("a", func(e *rqv1.Envelope) { e.Selector = map[string]string{"region": "r"} })
			node := w.Nodes[w.on("run0-0")].DeepCopy()
			node.Labels["region"] = "other"
			w.SetNode(node)
		},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.guarded(1, 1, 0)
				w.Book.Budgets.RefreshBudgets(w.Now)
				lease := w.OpenLeases()[0]
				if over := w.Book.Overdraft(named(lease)); over != 0 || lease.Spec.Flavor != flavor {
					w.t.Fatalf("%d GPUs of %q are overdraft before anything has changed", over, lease.Spec.Flavor)
				}
				change(w)
				w.Book.Budgets.RefreshBudgets(w.Now)
				report, _ := w.Book.Budgets.BudgetReport(w.Budgets["a"], w.Now)
				if over := w.Book.Overdraft(named(lease)); over != 8 || len(report.Overdrafts) != 1 ||
					report.Overdrafts[0].Cause != "FlavorOrSelectorChanged" {
					w.t.Fatalf("%d GPUs are overdraft: %+v", over, report.Overdrafts)
				}
			})
		})
	}
}

// edit changes the envelope of a Budget.
func (w *world) edit(budget string, change func(*rqv1.Envelope)) {
	b := w.Budgets[budget].DeepCopy()
	b.Generation += 1000
	change(&b.Spec.Envelopes[0])
	w.SetBudget(b)
}

func named(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
