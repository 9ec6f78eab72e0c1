package rank

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Part is what a pod is in its Run: one of its active pods, or one of its spares, each counted from 0.
type Part struct {
	Index int
	Spare bool
}

// MaxPods bounds the index of a pod: the API allows no Run more GPUs.
const MaxPods = 1000000

// PodName returns the name of the pod that has a part in a Run: RUN-0, RUN-1, … for the active pods and RUN-s0, RUN-s1,
// … for the spares. Replacements keep it.
func (p Part) PodName(run string) string {
	if p.Spare {
		return run + "-s" + strconv.Itoa(p.Index)
	}
	return run + "-" + strconv.Itoa(p.Index)
}

// RoleOf returns the role of the Lease of a pod that has a part in a Run.
func RoleOf(spec *rqv1.RunSpec, p Part) rqv1.LeaseRole {
	switch {
	case spec.Opportunistic:
		return rqv1.RoleBorrowed
	case p.Spare:
		return rqv1.RoleSpare
	}
	return rqv1.RoleActive
}

// RunOf returns the UID of the Run that an object was made for; false for what no Run made. A pod's label says so,
// which only the scheduler writes: references are everybody's to change, and the garbage collector takes them away when
// the pods of a Run are to outlive it. Pods of before there was the label have the reference alone.
func RunOf(o metav1.Object) (types.UID, bool) {
	if uid := o.GetLabels()[rqv1.LabelRunUID]; uid != "" {
		return types.UID(uid), true
	}
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.Kind != "Run" || owner.APIVersion != rqv1.GroupVersion.String() ||
		owner.Name != o.GetLabels()[rqv1.LabelRun] {
		return "", false
	}
	return owner.UID, true
}

// Membership returns the Run that a pod belongs to and the pod's part in it; false for a pod that is not a Run's.
func Membership(pod *corev1.Pod) (run types.UID, part Part, ok bool) {
	run, ok = RunOf(pod)
	index, err := strconv.Atoi(pod.Labels[rqv1.LabelIndex])
	part = Part{Index: index, Spare: pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare)}
	if !ok || err != nil || index < 0 || index >= MaxPods ||
		pod.Name != part.PodName(pod.Labels[rqv1.LabelRun]) && !Theirs(pod) {
		return "", Part{}, false
	}
	return run, part, true
}

// Theirs reports whether a pod that has a rank in a Run was made by somebody else.
func Theirs(pod *corev1.Pod) bool { return pod.Labels[rqv1.LabelSource] == string(rqv1.SourcePods) }

// Held returns the part of the pod that a Lease is held by.
func Held(l *rqv1.Lease) Part {
	return Part{Index: l.Index(), Spare: l.Spec.Slice.Role == rqv1.RoleSpare}
}

// Taken reports whether a kubelet has taken a pod, or has turned it away: until then it has only been said where it is
// to run, which anybody who may create pods can say.
func Taken(pod *corev1.Pod) bool {
	return pod.Status.StartTime != nil || pod.Status.Phase == corev1.PodRunning || Ended(pod)
}

// Ended reports whether a pod has ended: it holds nothing any more.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
