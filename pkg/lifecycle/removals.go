package lifecycle

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// removals are the pods to delete.
type removals struct {
	facts *facts
	list  []Deletion
	known map[types.UID]bool
}

// removalsOf returns the pods that a Run gives up, and the pods that have to go whatever the Run has come to, all of
// them with a bounded time to end.
func removalsOf(f *facts, given []Deletion) []Deletion {
	r := removals{facts: f, known: map[types.UID]bool{}}
	for i := range given {
		r.add(given[i])
	}
	r.addStranded()
	r.addOrphans()
	r.addDone()
	r.limitGrace()
	return r.list
}

// add adds a deletion, unless the pod goes already: the first reason for which it does counts.
func (r *removals) add(d Deletion) {
	if r.known[d.Pod.UID] {
		return
	}
	r.list = append(r.list, d)
	r.known[d.Pod.UID] = true
}

// addStranded adds pods that nobody is there to end: what runs or terminates on a lost node.
func (r *removals) addStranded() {
	for _, pod := range r.facts.Pods {
		_, ours := r.facts.runOf(pod)
		if !ours || !bound(pod) || r.facts.Stands(pod.Spec.NodeName) || present(pod) && !unfinished(pod) {
			continue
		}
		r.add(Deletion{Pod: pod, If: NodeLost, Node: pod.Spec.NodeName, Why: onLostNode})
	}
}

// addOrphans adds the pods that no Run governs: the pods of a Run that is being deleted, whatever keeps its object; the
// pods of a Run that is gone, however it was deleted; and pods that only their Leases tell of, whose ranks other pods
// take. Pods that have ended go too, since a later Run's pods want their names.
func (r *removals) addOrphans() {
	for _, pod := range r.facts.Pods {
		run, ours := r.facts.runOf(pod)
		if !ours || !present(pod) {
			continue
		}
		_, _, member := rank.Membership(pod)
		switch {
		case r.facts.Run == nil || r.facts.Run.UID != run:
			r.add(Deletion{Pod: pod, If: RunGone, Run: run, Why: "its Run is gone"})
		case !r.facts.stays() || !member:
			r.add(Deletion{Pod: pod, Why: "no rank of its Run is its own"})
		}
	}
}

// limitGrace bounds the time that pods have to end. A pod that was made with more gets less; a pod that somebody else
// told to go, and gave too long, is deleted again and has what is left of the bound.
func (r *removals) limitGrace() {
	most := r.facts.longestGrace()
	for i := range r.list {
		d := &r.list[i]
		if d.Notice != nil || d.If == NodeLost {
			continue
		}
		grace, left := graceOf(&d.Pod.Spec), most
		if by, told := rank.GoesBy(d.Pod); told { // it has had the rest of its time, or all of it
			left = min(most, max(1, int64(by.Sub(r.facts.Now)/time.Second)))
		}
		if grace > left {
			d.GraceSeconds = &left
		}
	}
	for _, pod := range r.facts.Pods {
		given := pod.DeletionGracePeriodSeconds
		if _, ours := r.facts.runOf(pod); ours && unfinished(pod) && given != nil && *given > most {
			r.add(Deletion{Pod: pod, GraceSeconds: &most, Why: "it was given too long to end"})
		}
	}
}
