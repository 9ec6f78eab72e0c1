package audit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/audit"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/restart"
)

func few(gpus int64) corev1.ResourceList {
	return corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
}

// activated is a Reservation that has cut a Run, with a record that verifies.
func activated(state rqv1.ReservationState, why string) *rqv1.Reservation {
	at := metav1.NewMicroTime(noon.Add(-30 * time.Minute))
	victim := rqv1.NamespacedName{Namespace: "ns", Name: "victim"}
	set := []rqv1.Conflict{{Run: victim, Owner: "org:team", Action: rqv1.CutLottery, GPUs: 8, Probability: "1"}}
	nonce := [32]byte{7}
	first, _ := resolver.NewDraw(nonce, set).Next()
	return &rqv1.Reservation{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "done-r0",
		Labels: map[string]string{rqv1.LabelRunUID: "run-train"}},
		Spec: rqv1.ReservationSpec{RunRef: rqv1.NamespacedName{Namespace: "ns", Name: "train"}},
		Status: rqv1.ReservationStatus{State: state, Reason: why, ActivatedAt: &at, ConflictSet: set,
			Lottery: &rqv1.Lottery{Commitment: resolver.Commitment(nonce), Nonce: fmt.Sprintf("%x", nonce),
				ConflictSetDigest: resolver.Digest(set), Draws: []rqv1.Draw{{Owner: first.Owner, Run: first.Run}}},
			Cuts: []rqv1.Cut{{Run: victim, UID: "victim", Action: rqv1.CutLottery, GPUs: 8}}}}
}

// TestBroken breaks a sound world in one way after the other. Each is found once, under its name and in words.
func TestBroken(t *testing.T) {
	team := func(w *audit.World) *rqv1.EnvelopeStatus { return &w.Budgets[0].Status.Envelopes[0] }
	for name, c := range map[string]struct {
		breaks func(w *audit.World)
		want   audit.Invariant
		level  audit.Level
		words  string
	}{
		"GPUs held twice": {func(w *audit.World) {
			w.Nodes[0].Status = corev1.NodeStatus{Allocatable: few(4),
				Capacity: few(4)}
		},
			"I1", audit.Violation, "node n0 has 4 GPUs, and GPU leases that are not opportunistic hold 8"},
		"a spare's held twice": {
			func(w *audit.World) { w.Nodes[2].Status = corev1.NodeStatus{Allocatable: few(7), Capacity: few(7)} },
			"I1", audit.Violation, "node n2 has 7 GPUs, and GPU leases that are not opportunistic hold 8"},
		"a Lease that was closed while its pod ends": {func(w *audit.World) {
			gone, grace := metav1.NewTime(noon.Add(-time.Minute)), int64(300)
			w.Pods[0].DeletionTimestamp, w.Pods[0].DeletionGracePeriodSeconds = &gone, &grace
			w.Leases, w.Budgets, w.Whole, w.Going = w.Leases[1:], nil, false, map[string]bool{"ns": false}
		},
			"I12", audit.Violation, "pod ns/train-0 ends on node n0, and its GPU lease was closed before it is gone"},
		"a GPU that fell ill": {func(w *audit.World) { w.Nodes[0].Status.Allocatable = few(7) },
			"I1", audit.Information, "node n0 has 7 GPUs left to hand out"},
		"a device plugin that restarts": {func(w *audit.World) { w.Nodes[0].Status = corev1.NodeStatus{} },
			"I1", audit.Information, "node n0 has 0 GPUs left to hand out"},
		"somebody else's pod": {func(w *audit.World) {
			p := pod(w.Runs[0], rank.Part{Index: 9}, "n0", 1)
			p.Labels, p.Spec.SchedulerName = nil, corev1.DefaultSchedulerName
			w.Pods = append(w.Pods, p)
		}, "I1", audit.Information, "node n0 has 8 GPUs, and pods hold 9, of which 1 were placed by others"},
		"pod without a Lease": {func(w *audit.World) { w.Leases, w.Budgets = w.Leases[1:], nil },
			"I2", audit.Violation, "pod ns/train-0 runs on node n0 with 8 GPUs and has 0 open GPU leases instead of one"},
		"pod with two": {func(w *audit.World) {
			twin := lease(w.Runs[0], w.Pods[0], 8, time.Hour)
			twin.Name, twin.Spec.Slice.Nodes[0].Name = "twin", "n3"
			w.Leases, w.Budgets = append(w.Leases, twin), nil
		}, "I2", audit.Violation, "has 2 open GPU leases instead of one"},
		"Lease without a pod": {func(w *audit.World) { w.Pods = append(w.Pods[:3:3], w.Pods[4:]...) },
			"I2", audit.Violation, "is open and holds 4 GPUs of node n2, and there is no such pod"},
		"Lease whose pod was deleted by force long ago": {func(w *audit.World) { outlives(w, noon.Add(-2*time.Minute)) },
			"I2", audit.Violation, "is open and holds 4 GPUs of node n2, and there is no such pod"},
		"Lease of a pod that ended": {func(w *audit.World) { w.Pods[3].Status.Phase = corev1.PodFailed },
			"I2", audit.Violation, "is open and holds 4 GPUs of node n2, and its pod has failed"},
		"Lease of a rank that died long ago": {func(w *audit.World) {
			w.Runs[0].Spec.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: time.Hour}}
			w.Pods[0].Status = died(w.At.Add(-5 * time.Minute))
		}, "I2", audit.Violation, "is open and holds 8 GPUs of node n0, and its pod has failed"},
		"Lease elsewhere": {func(w *audit.World) { w.Leases[0].Spec.Slice.Nodes[0].Name = "n3" },
			"I2", audit.Violation, "pod ns/train-0 runs on node n0, and its GPU lease is for node n3"},
		"Lease of fewer GPUs": {func(w *audit.World) { w.Leases[3].Spec.Slice.Nodes[0].GPUs, w.Budgets = 2, nil },
			"I2", audit.Violation, "pod ns/shards-0 asks for 4 GPUs, and its GPU lease holds 2"},
		"Lease of another role": {func(w *audit.World) { w.Leases[2].Spec.Slice.Role, w.Budgets = rqv1.RoleActive, nil },
			"I2", audit.Violation, "pod ns/train-s0 has the role Spare, and its GPU lease the role Active"},
		"more within a cap than it allows": {
			func(w *audit.World) { w.Budgets[0].Spec.AggregateCaps[0].MaxConcurrency = ptr.To[int32](16) },
			"I3", audit.Violation, "aggregate cap cap of Budget team allows 16 GPUs, and 24 are counted as within it"},
		"more within an envelope": {func(w *audit.World) { w.Budgets[0].Spec.Envelopes[0].Concurrency = 16 },
			"I3", audit.Violation, "allows 16 GPUs"},
		"more than a Budget ever allowed": {func(w *audit.World) {
			w.Budgets[0].Spec.Envelopes[0].Concurrency = 16
			team(w).OwnedGPUs, team(w).OverdraftGPUs, w.Budgets[0].Status.OverdraftGPUs = 8, 8, 8
		}, "I3", audit.Violation, "envelope all of Budget team allows 16 GPUs and was never edited, and GPU leases that " +
			"began since hold 24"},
		"closed by half": {func(w *audit.World) { w.Leases[4].Status.ClosureReason = "" },
			"I4", audit.Violation, `says closed: true, ended: true, closureReason: ""`},
		"a Run that has ended and stays": {func(w *audit.World) { w.Runs[0].Status.Phase = rqv1.RunFailed },
			"I5", audit.Violation, "Run ns/train is Failed, and 3 of its pods stay with 24 GPUs"},
		"a Run that is gone and stays": {func(w *audit.World) { w.Runs = append(w.Runs[:1:1], w.Runs[2:]...) },
			"I5", audit.Violation, "Run ns/shards is gone, and 1 of its pods stay with 4 GPUs"},
		"a group in two domains": {func(w *audit.World) { w.Nodes[1].Labels["fabric.domain"] = "b" },
			"I6", audit.Violation, "group 0 of Run ns/train lies in w/c/a and in w/c/b"},
		"narrower than the least": {func(w *audit.World) { w.Runs[0].Spec.Resources.TotalGPUs = 32 },
			"I7", audit.Violation, "Run ns/train is Running with 16 GPUs, needs 32 at least, and nothing replaces the others"},
		"a status that counts too few": {func(w *audit.World) {
			team(w).OwnedGPUs = 8
			w.Budgets[0].Status.UsedGPUs -= 8
			w.Budgets[0].Status.AggregateCaps[0].UsedGPUs -= 8
		},
			"I8", audit.Violation, "counts of envelope all 8 owned, 8 spare, 4 opportunistic and 0 overdraft, and its open " +
				"GPU leases hold 16 owned, 8 spare, 4 opportunistic"},
		"a status that counts too many": {func(w *audit.World) {
			team(w).SpareGPUs = 9
			w.Budgets[0].Status.UsedGPUs++
			w.Budgets[0].Status.AggregateCaps[0].UsedGPUs++
		},
			"I8", audit.Violation, "counts of envelope all 16 owned, 9 spare, 4 opportunistic"},
		"a status that says who pays wrongly": {func(w *audit.World) { team(w).OwnedGPUs, team(w).LentGPUs = 8, 8 },
			"I8", audit.Violation, "8 owned, 8 lent"},
		"a status that does not add up": {func(w *audit.World) { w.Budgets[0].Status.UsedGPUs = 7 }, "I8",
			audit.Violation, "says 7 GPUs used"},
		"a cap that does not add up": {func(w *audit.World) { w.Budgets[0].Status.AggregateCaps[0].UsedGPUs = 7 },
			"I8", audit.Violation, "counts 7 GPUs under aggregate cap cap"},
		"hours that were never spent": {func(w *audit.World) { team(w).GPUHours.Spent = "999.00000" }, "I8",
			audit.Violation, "has 999.00000 GPU-hours (spent), and the ledger comes to 127"},
		"hours that were forgotten": {func(w *audit.World) { team(w).GPUHours.Owned = "1.00000" }, "I8",
			audit.Violation, "has 1.00000 GPU-hours (owned)"},
		"a record that was lost": {func(w *audit.World) { w.Records = nil }, "I8", audit.Violation,
			"and the ledger comes to 27"},
		"a gang that is bound in part": {func(w *audit.World) { w.Runs[0].Status.Phase = rqv1.RunPending }, "I9",
			audit.Violation, "3 of its pods hold 24 GPUs since 2026-03-01T11:00:00Z"},
		"a group whose pods are not made although others are ready": {
			func(w *audit.World) { lateAndReady(w, noon.Add(-4*time.Minute)) }, "I9",
			audit.Violation, "2 of its pods hold 16 GPUs since 2026-03-01T11:50:00Z"},
		"a group whose first pods are never ready": {func(w *audit.World) {
			lateAndReady(w, time.Time{})
			for _, l := range w.Leases[:2] {
				l.Spec.Start = metav1.NewMicroTime(noon.Add(-22 * time.Minute))
			}
		}, "I9", audit.Violation, "2 of its pods hold 16 GPUs since"},
		"a rank that holds GPUs and never comes": {func(w *audit.World) { w.Pods[1].Spec.NodeName = "" }, "I9",
			audit.Violation, "Run ns/train is Running, and 1 of its pods hold 8 GPUs"},
		"cut in vain": {
			func(w *audit.World) { w.Reservations[0] = activated(rqv1.ReservationCanceled, "") }, "I10", audit.Violation,
			"did not start, and does not say why"},
		"cut for a Run that was deleted": {
			func(w *audit.World) { w.Reservations[0] = activated(rqv1.ReservationCanceled, "the Run is gone") }, "I10",
			audit.Information, "the Run is gone"},
		"cut for a Run that never began": {
			func(w *audit.World) { w.Reservations[0] = activated(rqv1.ReservationReleased, "the Run has started") }, "I10",
			audit.Violation, "no GPU lease of the Run began since"},
		"a pod that nobody pays for": {func(w *audit.World) {
			p := pod(w.Runs[0], rank.Part{Index: 9}, "n3", 1)
			p.Labels = nil
			w.Pods = append(w.Pods, p)
		}, "I11", audit.Violation, "pod ns/train-9 holds 1 GPUs on node n3, and 0 GPU leases pay for them"},
		"closed while its pod lives": {func(w *audit.World) {
			closed(w.Leases[0], time.Minute, rqv1.ClosedNodeFailure)
			w.Budgets = nil
		},
			"I12", audit.Violation, "pod ns/train-0 runs on node n0, and its GPU lease was closed as NodeFailure"},
		"a draw that was forged": {func(w *audit.World) {
			w.Reservations[0] = activated(rqv1.ReservationCanceled, "the Run is gone")
			w.Reservations[0].Status.Cuts = nil
			w.Reservations[0].Status.Lottery.Draws[0].Run.Name = "friend"
		}, "R21", audit.Violation, "does not verify: Draw 1 is"},
		"a conflict set that was changed": {func(w *audit.World) {
			w.Reservations[0].Status.Lottery = &rqv1.Lottery{ConflictSetDigest: "0"}
		}, "R21", audit.Violation, "conflictSetDigest"},
	} {
		t.Run(name, func(t *testing.T) {
			w := sound()
			c.breaks(w)
			found := examine(t, w)
			if len(found) != 1 || found[0].Invariant != c.want || found[0].Level != c.level ||
				!strings.Contains(found[0].Message, c.words) || found[0].Remedy == "" {
				t.Errorf("found %+v, want one %s of %s: %s", found, c.level, c.want, c.words)
			}
		})
	}
}

// lateAndReady has the first Run be a group that has been starting for ten minutes, of which others make some pods once
// the first are ready; zero for those that are not.
func lateAndReady(w *audit.World, since time.Time) {
	w.Budgets = nil
	w.Runs[0].Status.Phase = rqv1.RunPending
	w.Runs[0].Spec.Source, w.Runs[0].Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{Kind: "JobSet", Name: "g", Late: true}
	w.Pods, w.Leases = append(w.Pods[:2:2], w.Pods[3:]...), append(w.Leases[:2:2], w.Leases[3:]...)
	for i, p := range w.Pods[:2] {
		w.Leases[i].Spec.Start = metav1.NewMicroTime(noon.Add(-10 * time.Minute))
		if !since.IsZero() {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(since)}}
		}
	}
}

// outlives has a pod be gone whose containers end by an instant, as its Lease says.
func outlives(w *audit.World, by time.Time) {
	for _, lease := range w.Leases {
		if lease.PodUID() == w.Pods[3].UID {
			lease.Status.EndsBy = &metav1.MicroTime{Time: by}
		}
	}
	w.Pods = append(w.Pods[:3:3], w.Pods[4:]...)
}

// TestUnderWay changes a sound world in ways that are as they may be, for a while or for long.
func TestUnderWay(t *testing.T) {
	now := metav1.NewTime(noon)
	for name, change := range map[string]func(w *audit.World){
		"a pod that terminates for long": func(w *audit.World) {
			w.Runs[0].Status.Phase = rqv1.RunFailed
			for _, p := range w.Pods[:3] {
				p.DeletionTimestamp = &now
			}
		},
		"a Run that is gone, with pods that go": func(w *audit.World) {
			w.Runs = w.Runs[1:]
			for _, p := range w.Pods[:3] {
				p.DeletionTimestamp = &now
			}
		},
		"a pod that was deleted by force": func(w *audit.World) { outlives(w, noon.Add(time.Minute)) },
		"a rank that is being replaced": func(w *audit.World) {
			w.Runs[0].Spec.Resources.TotalGPUs = 24
			w.Pods = append(w.Pods, pod(w.Runs[0], rank.Part{Index: 2}, "", 8))
		},
		"two ranks that exchange payers, of which one Lease is written": func(w *audit.World) {
			x := rank.Exchanged(w.Leases[0], w.Leases[1], noon.Add(-time.Second))
			x.Now[0].UID = "first"
			w.Leases = append(w.Leases, x.Now[0])
		},
		"two ranks that exchange payers, of which both are": func(w *audit.World) {
			x := rank.Exchanged(w.Leases[0], w.Leases[1], noon.Add(-time.Second))
			x.Now[0].UID, x.Now[1].UID = "first", "second"
			w.Leases = append(w.Leases, x.Now[1], x.Now[0])
		},
		"a rank that cannot be made": func(w *audit.World) {
			w.Runs[0].Spec.Resources.TotalGPUs = 24
			w.Runs[0].Status.Conditions = []metav1.Condition{{Type: rqv1.ConditionStarted, Reason: "Replacing"}}
		},
		"a group that goes on without a pod": func(w *audit.World) {
			w.Runs[0].Spec.Resources.TotalGPUs, w.Runs[0].Spec.Source = 24, rqv1.SourcePods
			w.Runs[0].Status.Conditions = []metav1.Condition{{Type: rqv1.ConditionStarted, Reason: "PodsNotMade"}}
		},
		"a group whose first pods are not ready yet": func(w *audit.World) { lateAndReady(w, time.Time{}) },
		"a group whose first pods are ready":         func(w *audit.World) { lateAndReady(w, noon.Add(-time.Minute)) },
		"a rank that has succeeded": func(w *audit.World) {
			w.Pods[0].Status.Phase = corev1.PodSucceeded
			closed(w.Leases[0], 0, rqv1.ClosedCompleted)
		},
		"a gang that starts": func(w *audit.World) {
			w.Budgets = nil
			w.Runs[0].Status.Phase = rqv1.RunPending
			for _, l := range w.Leases[:3] {
				l.Spec.Start = metav1.NewMicroTime(noon)
			}
		},
		"a gang that is placed and has no Lease yet": func(w *audit.World) {
			w.Reservations = nil
			w.Runs[3].Status.Conditions[0].Reason = "Waiting"
			e := &w.Budgets[0].Status.Envelopes[0]
			e.OwnedGPUs += 8
			w.Budgets[0].Status.UsedGPUs += 8
			w.Budgets[0].Status.AggregateCaps[0].UsedGPUs += 8
		},
		"a gang with a spare that is placed and has no Lease yet": func(w *audit.World) {
			w.Reservations = nil
			w.Runs[3].Spec.Spares = ptr.To[int32](1) // a pod of 8 GPUs
			w.Budgets[0].Spec.Envelopes[0].Concurrency, w.Budgets[0].Spec.AggregateCaps[0].MaxConcurrency = 64, ptr.To[int32](64)
			w.Runs[3].Status.Conditions[0].Reason = "Waiting"
			e := &w.Budgets[0].Status.Envelopes[0]
			e.OwnedGPUs += 8
			e.SpareGPUs += 8
			w.Budgets[0].Status.UsedGPUs += 16
			w.Budgets[0].Status.AggregateCaps[0].UsedGPUs += 16
		},
		"an activation that waits for others to go": func(w *audit.World) {
			w.Reservations[0].Status.State = rqv1.ReservationActivating
			w.Reservations[0].Spec.PayingEnvelopes = []rqv1.PayingEnvelope{{Budget: "team", Envelope: "all", GPUs: 8}}
			e := &w.Budgets[0].Status.Envelopes[0]
			e.OwnedGPUs += 8
			w.Budgets[0].Status.UsedGPUs += 8
			w.Budgets[0].Status.AggregateCaps[0].UsedGPUs += 8
		},
		"a Run that was requeued and keeps its room": func(w *audit.World) {
			w.Runs[3].CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
			w.Runs[3].Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(-9 * time.Minute))
			w.Budgets[0].Status.Envelopes[0].OwnedGPUs += 8
			w.Budgets[0].Status.UsedGPUs += 8
			w.Budgets[0].Status.AggregateCaps[0].UsedGPUs += 8
		},
		"a namespace that is deleted": func(w *audit.World) {
			w.Leases, w.Runs, w.Budgets = nil, nil, nil
			for _, p := range w.Pods {
				p.DeletionTimestamp = &now
			}
		},
		"a Budget that was lowered": func(w *audit.World) {
			w.Budgets[0].Spec.Envelopes[0].Concurrency,
				w.Budgets[0].Generation = 8, 2
		},
		"a node that was cordoned":  func(w *audit.World) { w.Nodes[0].Spec.Unschedulable = true },
		"a node without its labels": func(w *audit.World) { w.Nodes[1].Labels = nil },
		"a node that is gone":       func(w *audit.World) { w.Nodes = w.Nodes[1:]; w.Pods[0].DeletionTimestamp = &now },
		"a Lease that is settled and there": func(w *audit.World) {
			l := lease(w.Runs[2], w.Pods[4], 8, 900*time.Hour)
			l.Name = "old"
			w.Leases = append(w.Leases, closed(l, 800*time.Hour, rqv1.ClosedCompleted))
		},
		"a pod that asks for no GPUs": func(w *audit.World) {
			p := pod(w.Runs[0], rank.Part{Index: 9}, "n3", 0)
			p.Labels = nil
			w.Pods = append(w.Pods, p)
		},
		"a Run that started by cuts": func(w *audit.World) {
			w.Reservations[0] = activated(rqv1.ReservationReleased, "the Run has started")
			w.Leases[0].Spec.Start = metav1.NewMicroTime(noon)
			w.Budgets = nil
		},
		"a rank that died, and is started again once its pause is over": func(w *audit.World) {
			w.Runs[0].Spec.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: time.Hour}}
			w.Pods[0].Status = died(w.At.Add(-restart.Pause))
		},
		"a Run that is suspended by deleting": func(w *audit.World) {
			w.Runs[0].DeletionTimestamp = &now
			w.Runs[0].Spec.Resources.TotalGPUs = 64
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := sound()
			change(w)
			if found := examine(t, w); len(found) > 0 {
				t.Errorf("found %+v", found)
			}
		})
	}
}

// TestCount counts violations, not information, and reports in order.
func TestCount(t *testing.T) {
	w := sound()
	w.Nodes[0].Status.Allocatable = few(7)
	w.Runs[0].Status.Phase = rqv1.RunFailed
	w.Pods[3].Status.Phase = corev1.PodFailed
	w.Budgets[0].Status.UsedGPUs = 7
	found := examine(t, w)
	var got []string
	for i := range found {
		got = append(got, string(found[i].Invariant))
	}
	if want := "I1 I2 I5 I8"; strings.Join(got, " ") != want {
		t.Errorf("found %v, want %s", got, want)
	}
	counts := audit.Count(found)
	if counts["I1"] != 0 || counts["I2"] != 1 || counts["I5"] != 1 || counts["I8"] != 1 || counts["I9"] != 0 {
		t.Errorf("counts %v", counts)
	}
}
