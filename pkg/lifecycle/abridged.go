package lifecycle

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Plain returns an observation without what the API server notes of who wrote which field, which is much and which
// nothing is decided on.
func (o Observed) Plain() Observed {
	if o.Run != nil {
		run := *o.Run
		run.ManagedFields = nil
		o.Run = &run
	}
	o.Pods = copies(o.Pods, func(p *corev1.Pod) { p.ManagedFields = nil })
	o.Left = maps.Clone(o.Left)
	for uid, pod := range o.Left {
		o.Left[uid] = abridged(pod)
		o.Left[uid].ManagedFields = nil
	}
	o.Leases = copies(o.Leases, func(l *rqv1.Lease) { l.ManagedFields = nil })
	o.Reservations = copies(o.Reservations, func(r *rqv1.Reservation) { r.ManagedFields = nil })
	return o
}

// Abridged returns an observation with the first of its pods as it is, and no more of the others than is decided on: a
// wide Run's pods differ in little else.
func (o Observed) Abridged() Observed {
	o = o.Plain()
	for i, pod := range o.Pods {
		if i > 0 {
			o.Pods[i] = abridged(pod)
		}
	}
	return o
}

// abridged returns what is decided on of a pod.
func abridged(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: pod.ObjectMeta}
	out.Labels, out.Annotations = ours(pod.Labels), ours(pod.Annotations)
	out.Spec.NodeName, out.Spec.Subdomain = pod.Spec.NodeName, pod.Spec.Subdomain
	out.Spec.Tolerations = pod.Spec.Tolerations
	out.Spec.TerminationGracePeriodSeconds = pod.Spec.TerminationGracePeriodSeconds
	out.Status = corev1.PodStatus{Phase: pod.Status.Phase, Reason: pod.Status.Reason, Message: pod.Status.Message}
	for _, c := range pod.Status.Conditions {
		c.LastProbeTime = metav1.Time{}
		out.Status.Conditions = append(out.Status.Conditions, c)
	}
	out.Status.InitContainerStatuses = briefly(pod.Status.InitContainerStatuses)
	out.Status.ContainerStatuses = briefly(pod.Status.ContainerStatuses)
	return out
}

// briefly returns how containers have ended, or what they wait for.
func briefly(all []corev1.ContainerStatus) (out []corev1.ContainerStatus) {
	for i := range all {
		c := &all[i]
		brief := corev1.ContainerStatus{Name: c.Name, RestartCount: c.RestartCount,
			AllocatedResourcesStatus: c.AllocatedResourcesStatus, LastTerminationState: corev1.ContainerState{
				Terminated: ended(c.LastTerminationState.Terminated)}}
		brief.State = corev1.ContainerState{Waiting: c.State.Waiting, Terminated: ended(c.State.Terminated)}
		if brief.State != (corev1.ContainerState{}) || brief.RestartCount > 0 || brief.AllocatedResourcesStatus != nil {
			out = append(out, brief)
		}
	}
	return out
}

// ended returns how a container ended, without what names it.
func ended(t *corev1.ContainerStateTerminated) *corev1.ContainerStateTerminated {
	if t == nil {
		return nil
	}
	return &corev1.ContainerStateTerminated{ExitCode: t.ExitCode, Reason: t.Reason, Message: t.Message,
		StartedAt: t.StartedAt, FinishedAt: t.FinishedAt}
}

// ours returns the labels or annotations under our own name.
func ours(all map[string]string) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(key, _ string) bool { return !strings.HasPrefix(key, rqv1.GroupName+"/") })
	return out
}

// copies returns copies of some objects, edited.
func copies[T any](objects []*T, edit func(*T)) []*T {
	out := make([]*T, len(objects))
	for i, object := range objects {
		edited := *object
		edit(&edited)
		out[i] = &edited
	}
	return out
}
