package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// saved returns when the work of a pod was saved last, as far as it or its Run says; zero when neither does.
func (f *facts) saved(pod *corev1.Pod) (at time.Time) {
	if f.Run != nil {
		at, _ = rank.SavedAt(f.Run, f.Now)
	}
	if pod != nil {
		if own, _ := rank.SavedAt(pod, f.Now); own.After(at) {
			at = own
		}
	}
	return at
}

// takeMe reports whether a pod says that it may be ended at once, or its Run of all its pods.
func (f *facts) takeMe(pod *corev1.Pod) bool {
	return pod.Annotations[rqv1.AnnotationTakeMe] == "true" ||
		f.Run != nil && f.Run.Annotations[rqv1.AnnotationTakeMe] == "true"
}

// atOnce is the least that a pod is given to end: with less, nobody would wait until its containers have.
const atOnce = int64(1)

// addDone has those pods end at once that have been told to go and say that they are done.
func (r *removals) addDone() {
	for _, pod := range r.facts.Pods {
		given := pod.DeletionGracePeriodSeconds
		if _, ours := r.facts.runOf(pod); ours && !present(pod) && unfinished(pod) && given != nil && *given > atOnce &&
			r.facts.takeMe(pod) {
			seconds := atOnce
			r.add(Deletion{Pod: pod, GraceSeconds: &seconds, Why: "it says that it has saved its work"})
		}
	}
}

// setSaveIgnored says of what the Run and its pods say of their work what cannot be true.
func setSaveIgnored(c conditions, s *situation) {
	var wrong []string
	if _, why := rank.SavedAt(s.facts.Run, s.facts.Now); why != "" {
		wrong = append(wrong, "on the Run "+why)
	}
	for _, pod := range s.roster.all() {
		if pod == nil || len(wrong) == nodesTold {
			continue
		}
		if _, why := rank.SavedAt(pod, s.facts.Now); why != "" {
			wrong = append(wrong, fmt.Sprintf("on pod %s %s", pod.Name, why))
		}
	}
	var ignored *saying
	if len(wrong) > 0 {
		ignored = &saying{"NoTime", fmt.Sprintf("annotation %s is ignored: %s", rqv1.AnnotationSavedAt,
			strings.Join(wrong, "; "))}
	}
	c.raise(rqv1.ConditionSaveIgnored, ignored, saying{"Noted", "the time of the last save is recorded"})
}

// kept are the reasons for which a Lease closes whose pod loses no work.
var kept = []rqv1.ClosureReason{rqv1.ClosedCompleted, rqv1.ClosedUnwound, rqv1.ClosedSwap, rqv1.ClosedDropSpare}

// noteLost says of Leases that close since when their work is lost. When a rank is lost its Run goes on from what was
// saved last, so that the work of all others is lost as well: one of the Leases that close tells of that.
func (f *facts) noteLost(out []Closing) {
	told := map[*rqv1.Lease]bool{}
	for i := range out {
		told[out[i].Lease] = true
	}
	others := int32(0)
	if f.stays() && saysRunning(f.Run) && !f.opportunistic() {
		for _, lease := range f.Leases {
			if !told[lease] && lease.Status.EndsBy == nil && lease.Spec.RunRef.UID == f.Run.UID &&
				lease.Spec.Slice.Role == rqv1.RoleActive {
				others += lease.GPUs()
			}
		}
	}
	whole := f.wholeSince()
	var first *Closing   // by name
	for i := range out { // of one that has outlived its pod that was told before
		c := &out[i]
		if c.Lease.Spec.Slice.Role == rqv1.RoleSpare || c.Lease.Status.EndsBy != nil || slices.Contains(kept, c.Reason) ||
			f.hasCompleted() {
			continue
		}
		c.LostSince = f.lostSince(c.Lease, whole)
		if c.Reason != rqv1.ClosedShrink && (first == nil || c.Lease.Name < first.Lease.Name) {
			first = c
		}
	}
	if first != nil {
		first.Others = others
	}
}

func (f *facts) hasCompleted() bool { return f.Run != nil && f.Run.Status.Phase == rqv1.RunCompleted }

// wholeSince returns when the last rank of the Run that is there came; zero when there is none.
func (f *facts) wholeSince() (since time.Time) {
	for _, lease := range f.Leases {
		if f.Run != nil && lease.Spec.RunRef.UID == f.Run.UID && lease.Spec.Slice.Role == rqv1.RoleActive {
			since = latest(since, lease.HeldSince())
		}
	}
	return since
}

// lostSince returns since when the work of a Lease is lost that closes: the last save or, of a gang, when it became
// whole, or lost a rank. A Run that declares a checkpoint, and has not said when it saved, loses no more than that.
func (f *facts) lostSince(lease *rqv1.Lease, whole time.Time) time.Time {
	since, saved := lease.HeldSince(), f.saved(f.podOf[lease.PodUID()])
	if f.Run != nil && f.Run.UID == lease.Spec.RunRef.UID && !f.opportunistic() {
		since = latest(latest(since, whole), f.LastLoss)
		if f.Run.Spec.Checkpoints() && saved.IsZero() {
			saved = f.Now.Add(-f.Run.Spec.Runtime.Checkpoint.Duration)
		}
	}
	return latest(since, saved)
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
