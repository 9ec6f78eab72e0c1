package book_test

import (
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// checkSettled asserts what holds once everybody has done their work.
func (w *world) checkSettled() {
	if slices.ContainsFunc(w.OpenLeases(), w.awaitsPods) {
		return // a try is under way
	}
	for _, lease := range w.OpenLeases() {
		pod := w.Pods[types.UID(lease.Labels[rqv1.LabelPodUID])]
		if w.Lost(lease.Node()) {
			w.t.Fatalf("Lease %s is open on a lost node", lease.Name)
		}
		if pod == nil || pod.Status.Phase != corev1.PodRunning {
			w.t.Fatalf("I2: Lease %s is open and its pod does not run", lease.Name)
		}
		if run := w.Runs[lease.Spec.RunRef.Name]; run == nil || run.Status.Phase != rqv1.RunRunning {
			w.t.Fatalf("I5, I9: Lease %s is open and its Run does not run", lease.Name)
		}
	}
	if diff := cmp.Diff(w.ledgerUsage(), w.Book.Budgets.Usage()); diff != "" {
		w.t.Fatalf("I8: the counters are not what the Leases add up to (-leases +counters):\n%s", diff)
	}
	w.checkHeld()
	w.checkWidths()
	w.checkIncidents()
	fresh := w.Rebuilt(w.shuffle)
	w.checkShards(fresh)
	for _, name := range slices.Sorted(maps.Keys(w.Runs)) {
		for _, uid := range w.SortedPods() {
			if pod := w.Pods[uid]; pod.Labels[rqv1.LabelRun] == name && pod.Spec.NodeName == "" && fresh.Gate(pod) == "" {
				node, refusal, accepted := w.Place(fresh, uid)
				if refusal == nil && accepted && !w.Book.KeptFromIt(w.Runs[name].UID, w.Now) {
					w.t.Fatalf("Run %s waits although it would fit at %s: pod %s on node %s; its book says: %v\n%s", name, w.Now,
						pod.Name, node, w.Book.Refusal(w.Runs[name].UID), w.describe(name))
				}
			}
		}
	}
}

// awaitsPods reports whether a Lease of a Run that waits is held for pods which its controller has still to make, as
// one is again and again for a time (R46).
func (w *world) awaitsPods(lease *rqv1.Lease) bool {
	run := w.Runs[lease.Spec.RunRef.Name]
	if run == nil || !run.Spec.Theirs() {
		return false
	}
	c := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionStarted)
	return c != nil && c.Reason == "PodsNotMade" && w.Now.Sub(lease.HeldSince()) < 2*gangDeadline
}

// checkHeld asserts that the GPUs of a node that count as held are those of its open Leases (I1).
func (w *world) checkHeld() {
	held := map[string]int64{}
	for _, lease := range w.OpenLeases() {
		if lease.Spec.Slice.Role == rqv1.RoleBorrowed {
			continue
		}
		held[lease.Node()] += int64(lease.Spec.Slice.Nodes[0].GPUs)
	}
	for name := range w.Nodes {
		if counted := w.heldOn(name); counted != held[name] {
			w.t.Fatalf("I1: node %s has %d GPUs in open Leases and %d are counted", name, held[name], counted)
		}
	}
}
