package audit

import (
	"hash/fnv"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/restart"
)

// late is how much later than a deadline something may be seen to be done.
const late = time.Minute

// What the Started condition of a Run says by its reason whose lost ranks are being replaced, and of a group that goes
// on without pods which others make no more.
const (
	replacing = "Replacing"
	without   = "PodsNotMade"
)

// runs checks what Runs hold (I5, I7, I9). Pods that have been told to go hold their GPUs until they are gone, however
// long that takes, and excuse their Run.
func (s *sight) runs() {
	for _, run := range s.Runs {
		switch {
		case run.Ended():
			if pods, gpus := s.staying(s.runLeases[run.UID]); pods > 0 {
				s.find("I5", "", []Object{object("Run", run)}, "Run %s is %s, and %d of its pods stay with %d GPUs", nameOf(run),
					run.Status.Phase, pods, gpus)
			}
		case run.DeletionTimestamp != nil:
		case run.Status.Phase == rqv1.RunRunning:
			s.width(run)
			s.overdue(run, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })
		case !s.inTime(run):
			s.overdue(run, func(pod *corev1.Pod) bool { return !run.Spec.Opportunistic || pod.Spec.NodeName == "" })
		}
	}
	s.orphans()
}

// staying counts the pods of open Leases that have not been told to go, and their GPUs.
func (s *sight) staying(leases []*rqv1.Lease) (pods, gpus int) {
	for _, lease := range leases {
		if alive(s.podsBy[lease.PodUID()]) {
			pods++
			gpus += int(lease.GPUs())
		}
	}
	return pods, gpus
}

// orphans finds what Runs hold that are gone (I5).
func (s *sight) orphans() {
	gone := map[types.UID]bool{}
	for uid := range s.runLeases {
		gone[uid] = s.runsBy[uid] == nil
	}
	for uid, is := range gone {
		pods, gpus := s.staying(s.runLeases[uid])
		if !is || pods == 0 {
			continue
		}
		ref := s.runLeases[uid][0].Spec.RunRef
		s.find("I5", string(uid), []Object{{"Run", ref.Namespace, ref.Name}},
			"Run %s/%s is gone, and %d of its pods stay with %d GPUs", ref.Namespace, ref.Name, pods, gpus)
	}
}

// width finds a Run that runs below its least width while nothing is being done about it (I7). Ranks that have
// succeeded are never missing, and a group goes on with as many pods as its users leave it, as it says.
func (s *sight) width(run *rqv1.Run) {
	least := run.Spec.Resources.TotalGPUs
	if m := run.Spec.Malleable; m != nil {
		least = m.MinTotalGPUs
	}
	started := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionStarted)
	reason := ""
	if started != nil {
		reason = started.Reason
	}
	if run.Spec.Opportunistic || reason == replacing || reason == without && run.Spec.Theirs() {
		return
	}
	has, by := 0, s.runPods[run.UID]
	for _, pod := range by {
		switch {
		case isSpare(pod):
		case pod.Status.Phase == corev1.PodSucceeded:
			has += s.gpus(pod)
		case pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil:
			return // one is on its way, or makes room for it
		case pod.Status.Phase == corev1.PodFailed && restart.RulesOf(&run.Spec).Limit > 0:
			return // it is started again in a moment, or ends its Run (R34)
		case !rank.Ended(pod):
			has += s.gpus(pod)
		}
	}
	if has < int(least) {
		about := ""
		if run.Spec.Theirs() {
			about = which(by)
		}
		s.find("I7", about, []Object{object("Run", run)},
			"Run %s is Running with %d GPUs, needs %d at least, and nothing replaces the others", nameOf(run), has, least)
	}
}

// which tells sets of pods apart. Where pods of others take turns there is a moment after each of them at which nothing
// is known yet of the next; two such moments are not one finding.
func which(pods []*corev1.Pod) string {
	var sum uint64
	for _, pod := range pods {
		h := fnv.New64a()
		h.Write([]byte(pod.UID))
		sum ^= h.Sum64()
	}
	return strconv.FormatUint(sum, 16)
}

// inTime reports whether a group is within its time of whose pods others make some only once the first are ready (R40).
func (s *sight) inTime(run *rqv1.Run) bool {
	if !run.Spec.TheirsComeLate() {
		return false
	}
	began := s.At
	for _, lease := range s.runLeases[run.UID] {
		if at := lease.HeldSince(); alive(s.podsBy[lease.PodUID()]) && at.Before(began) {
			began = at
		}
	}
	return !s.At.After(rank.StartsBy(&run.Spec, began, s.runPods[run.UID], s.GangDeadline, s.At).Add(late))
}

// overdue finds gangs that are bound in part past their deadline (I9): pods of a kind that hold GPUs and stay.
func (s *sight) overdue(run *rqv1.Run, kind func(*corev1.Pod) bool) {
	pods, gpus, since := 0, 0, time.Time{}
	for _, lease := range s.runLeases[run.UID] {
		pod := s.podsBy[lease.PodUID()]
		if !alive(pod) || !kind(pod) || s.At.Sub(lease.HeldSince()) <= s.GangDeadline+late {
			continue
		}
		pods++
		gpus += int(lease.GPUs())
		if since.IsZero() || lease.HeldSince().Before(since) {
			since = lease.HeldSince()
		}
	}
	if pods > 0 {
		s.find("I9", "", []Object{object("Run", run)},
			"Run %s is %s, and %d of its pods hold %d GPUs since %s without all being bound; its deadline is %s",
			nameOf(run), phaseOf(run), pods, gpus, since.UTC().Format(time.RFC3339), s.GangDeadline)
	}
}

func phaseOf(run *rqv1.Run) rqv1.RunPhase {
	if run.Status.Phase == "" {
		return rqv1.RunPending
	}
	return run.Status.Phase
}
