package lifecycle

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// facts are an observation, with its pods and its Leases by the UID of the pod.
type facts struct {
	Observed
	podOf   map[types.UID]*corev1.Pod
	leaseOf map[types.UID]*rqv1.Lease
	// told are the shards that gave way last, by the status of the Run; nil when it does not say.
	told *toldShards
	// stored is the status of the Run as it is stored.
	stored *rqv1.RunStatus
	// tooLarge says that the Run leaves too little room for its status.
	tooLarge bool
}

func factsOf(o Observed) *facts {
	if o.Run != nil && o.Run.Spec.Theirs() { // others name their pods: one that never runs keeps nobody off its rank
		o.Pods = slices.DeleteFunc(slices.Clone(o.Pods), rank.NeverRuns)
	}
	f := &facts{Observed: o, podOf: map[types.UID]*corev1.Pod{}, leaseOf: map[types.UID]*rqv1.Lease{}}
	for _, pod := range o.Pods {
		if !rank.NeverRuns(pod) {
			f.podOf[pod.UID] = pod
		}
	}
	for _, lease := range o.Leases {
		f.leaseOf[lease.PodUID()] = lease
	}
	if o.Run != nil {
		f.stored, f.Run = &o.Run.Status, withoutUnended(o.Run)
		f.told = whoGaveWay(o.Run)
		if n := bytesOf(o.Run); n > maxRunBytes {
			f.tooLarge = true
			f.Problem = fmt.Sprintf("the Run has %d bytes as JSON, and may have %d, because its status needs room; shorten "+
				"its template, its annotations or its other metadata", n, maxRunBytes)
		}
	}
	return f
}

// maxRunBytes is how much of the 1.5 MiB that etcd takes of an object a Run may have before it gets pods.
const maxRunBytes = 1 << 20

// bytesOf returns how many bytes a Run takes as JSON; 0 for one that is small by its protobuf encoding, which is a
// third of it at least and takes no time.
func bytesOf(run *rqv1.Run) int {
	size := run.ObjectMeta.Size()
	if run.Spec.Template != nil {
		size += run.Spec.Template.Size()
	}
	if size < maxRunBytes/8 {
		return 0
	}
	text, err := json.Marshal(run)
	if err != nil {
		return maxRunBytes + 1
	}
	return len(text)
}

// stays reports whether the Run is there and is not being deleted.
func (f *facts) stays() bool { return f.Run != nil && f.Run.DeletionTimestamp == nil }

// opportunistic reports whether the Run's pods are shards, which come and go one by one (R15).
func (f *facts) opportunistic() bool { return f.Run.Spec.Opportunistic }

// runOf returns the Run that made a pod, as the pod itself says or, where that was taken off it, its Lease.
func (f *facts) runOf(pod *corev1.Pod) (types.UID, bool) {
	if run, ok := rank.RunOf(pod); ok {
		return run, true
	}
	if lease := f.leaseOf[pod.UID]; lease != nil {
		return lease.Spec.RunRef.UID, true
	}
	return "", false
}

// runs reports whether a pod is bound and has its Lease.
func (f *facts) runs(pod *corev1.Pod) bool { return bound(pod) && f.leaseOf[pod.UID] != nil }

// standBy reports whether every one of some spares is bound.
func (f *facts) standBy(spares []*corev1.Pod) bool {
	for _, pod := range spares {
		if !f.runs(pod) {
			return false
		}
	}
	return true
}

// failed reports whether a pod failed by its own doing: not because its node went away, or ended it or turned it away,
// or because it was told to go. One that was not ready in time has, too.
func (f *facts) failed(pod *corev1.Pod) bool {
	if present(pod) && bound(pod) && f.Stands(pod.Spec.NodeName) && f.late(pod) {
		return true
	}
	return present(pod) && pod.Status.Phase == corev1.PodFailed && (!bound(pod) || f.Stands(pod.Spec.NodeName)) &&
		!f.evicted(pod)
}

// swapping reports whether a rank's pod waits for the spare that it records to make room.
func (f *facts) swapping(pod *corev1.Pod) bool {
	if !active(pod) || bound(pod) {
		return false
	}
	r, ok := rank.ReplacementOf(pod)
	there := f.podOf[r.SpareUID] != nil || f.leaseOf[r.SpareUID] != nil
	return ok && r.SpareUID != "" && there && !f.Unseated[r.SpareUID]
}

// reclaims reports whether a pod is a shard that has been told to give its GPUs back.
func (f *facts) reclaims(pod *corev1.Pod) bool {
	if !f.opportunistic() {
		return false
	}
	_, told := f.Reclaimed(pod.UID)
	return told
}
