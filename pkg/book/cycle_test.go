package book_test

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// act carries out what the book asks of the queue.
func (w *world) act() {
	actions := w.book.TakeActions()
	for _, uid := range actions.Reject {
		w.unreserve(uid)
	}
	for _, pod := range actions.Activate {
		w.queue[pod.UID] = true
	}
}

// cycle is one scheduling cycle of a pod, if the queue tries it: one that was turned down, or let in and refused, is left alone
// until the book asks for it.
func (w *world) cycle(uid types.UID) {
	pod := w.pods[uid]
	if !w.queue[uid] {
		return
	}
	delete(w.queue, uid)
	_, waits := w.waiting[uid]
	_, binds := w.binding[uid]
	if pod == nil || waits || binds || pod.Spec.NodeName != "" || w.book.Gate(pod) != "" {
		return
	}
	planned := w.book.Assigned(uid) == ""
	node, refusal := w.book.Place(uid, w.now)
	if refusal != nil {
		if w.storm.refused(uid); w.storm == nil {
			w.book.Promise(uid, w.now)
		}
		return
	}
	if why := w.rejects[node]; why != "" && pod.Labels[rqv1.LabelRole] != string(rqv1.RoleSpare) { // a spare asks for little
		w.unforeseen() // what is planned by GPUs alone may have been planned in vain
		w.book.Turned(uid, node, why)
		return
	}
	if planned && pod.Labels[rqv1.LabelCohort] != "0" {
		w.checkIntended(pod, node)
	}
	if err := w.book.Reserve(uid, node); err != nil {
		w.t.Fatalf("a pod placed in this cycle cannot be reserved: %v", err)
	}
	for _, sibling := range w.book.Follow(uid) {
		w.queue[sibling.UID] = true
	}
	open, release, wait := w.book.Arrive(uid, w.now)
	switch {
	case !open && wait <= 0:
		w.book.Unreserve(uid, w.now)
	case !open:
		w.waiting[uid] = w.now.Add(wait)
	default:
		w.binding[uid] = node
		for _, other := range release {
			if _, ok := w.waiting[other]; !ok {
				w.t.Fatalf("the barrier releases a pod that is not there")
			}
			delete(w.waiting, other)
			w.binding[other] = w.book.Assigned(other)
		}
	}
}

// unreserve ends a pod's wait or its binding.
func (w *world) unreserve(uid types.UID) {
	_, waits := w.waiting[uid]
	_, binds := w.binding[uid]
	delete(w.waiting, uid)
	delete(w.binding, uid)
	if waits || binds {
		w.queue[uid] = true // after a while
		w.book.Unreserve(uid, w.now)
	}
}

// outcome is how a write to the API server ends.
type outcome int

const (
	written outcome = iota
	rejected
	lost // written, but the answer never came
)

// bind writes a pod's Lease and binds the pod.
func (w *world) bind(uid types.UID, how outcome) {
	w.storm.write()
	node, ok := w.binding[uid]
	if !ok {
		return
	}
	lease, err := w.book.NewLease(uid, w.now)
	if err != nil {
		w.unreserve(uid)
		return
	}
	if how == rejected && w.leases[lease.Name] == nil {
		w.book.NotWritten(uid, types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name})
		w.unreserve(uid)
		return
	}
	if w.leases[lease.Name] == nil {
		w.leases[lease.Name] = lease
	}
	if how == lost {
		w.unreserve(uid)
		w.book.SetLease(w.leases[lease.Name])
		return
	}
	w.book.SetLease(w.leases[lease.Name])
	if on := w.leases[lease.Name].Spec.Slice.Nodes[0].Name; on != node {
		w.t.Fatalf("pod %s has its Lease on %s and is bound to %s", w.pods[uid].Name, on, node)
	}
	delete(w.binding, uid)
	if w.nodes[node] == nil {
		w.queue[uid] = true
		return
	}
	pod := w.pods[uid].DeepCopy()
	pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
	w.setPod(pod)
}

// pass lets time go by and ends waits that are over.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	for run, at := range w.retries {
		if !at.After(w.now) {
			delete(w.retries, run)
			w.book.Retry(run)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(w.waiting)) {
		if until, ok := w.waiting[uid]; ok && w.now.After(until) {
			w.unreserve(uid)
		}
	}
}
