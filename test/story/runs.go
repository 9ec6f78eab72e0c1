package story

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// RunChange says something of a Run, when it is submitted or edited.
type RunChange func(*rqv1.Run)

// Annotations by which pods ask that their kubelets play them otherwise than that they run until they are told to go,
// and go at once then.
const (
	// TakesAnnotation is how long they take to go, and SucceedsAnnotation after what time they succeed. UnreadyAnnotation
	// is how the names of those begin that never become ready.
	TakesAnnotation    = "pod-delete.stage.kwok.x-k8s.io/delay"
	SucceedsAnnotation = "pod-complete.stage.kwok.x-k8s.io/delay"
	UnreadyAnnotation  = "pod-unready.stage.kwok.x-k8s.io/name"
)

// InPods makes pods of so many GPUs.
func InPods(gpus int32) RunChange { return func(r *rqv1.Run) { r.Spec.Resources.GPUsPerPod = &gpus } }

// InGroups makes groups of so many GPUs.
func InGroups(gpus int32) RunChange {
	return func(r *rqv1.Run) { r.Spec.Locality = &rqv1.RunLocality{GroupGPUs: &gpus} }
}

// InOneDomain has all pods of a Run lie in one domain, for as long as it runs.
func InOneDomain(r *rqv1.Run) {
	r.Spec.Locality = &rqv1.RunLocality{AllowCrossGroupSpread: new(bool)}
}

// Spares has so many GPUs stand by in each group.
func Spares(gpus int32) RunChange { return func(r *rqv1.Run) { r.Spec.SparesPerGroup = &gpus } }

// Elastic lets a Run have from least to most GPUs, by steps.
func Elastic(least, most, step int32) RunChange {
	return func(r *rqv1.Run) {
		r.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: least, MaxTotalGPUs: most, StepGPUs: step}
	}
}

// Desires has an elastic Run want so many GPUs.
func Desires(gpus int32) RunChange {
	return func(r *rqv1.Run) { r.Spec.Malleable.DesiredTotalGPUs = &gpus }
}

// Checkpointed has a Run save its work so often, so that it may be sent back to wait.
func Checkpointed(every time.Duration) RunChange {
	return func(r *rqv1.Run) { runtime(r).Checkpoint = &metav1.Duration{Duration: every} }
}

// Lasts bounds how long a Run takes.
func Lasts(most time.Duration) RunChange {
	return func(r *rqv1.Run) { runtime(r).MaxDuration = &metav1.Duration{Duration: most} }
}

// Restarts says how often a Run is started again, and by which exit codes it is not, or elsewhere.
func Restarts(limit int32, codes map[string]rqv1.RestartAction) RunChange {
	return func(r *rqv1.Run) { runtime(r).Restarts = &rqv1.RunRestarts{Limit: &limit, OnExitCodes: codes} }
}

// Opportunistic has a Run take what nobody else uses, a pod at a time.
func Opportunistic(r *rqv1.Run) { r.Spec.Opportunistic = true }

// Suspended holds a Run back, and Resumed does not any more.
func Suspended(r *rqv1.Run) { r.Spec.Suspend = true }

// Resumed has a Run not be held back any more.
func Resumed(r *rqv1.Run) { r.Spec.Suspend = false }

// StaysFor has a Run stay for some seconds after its end.
func StaysFor(seconds int32) RunChange {
	return func(r *rqv1.Run) { r.Spec.TTLSecondsAfterFinished = &seconds }
}

// Total has a Run be of so many GPUs.
func Total(gpus int32) RunChange { return func(r *rqv1.Run) { r.Spec.Resources.TotalGPUs = gpus } }

// Succeeds has a Run's pods succeed after a time.
func Succeeds(after time.Duration) RunChange { return annotated(SucceedsAnnotation, after) }

// Takes has a Run's pods ask for so much time to end, and take so long.
func Takes(asks, takes time.Duration) RunChange {
	return func(r *rqv1.Run) {
		annotated(TakesAnnotation, takes)(r)
		grace := int64(asks / time.Second)
		template(r).Spec.TerminationGracePeriodSeconds = &grace
	}
}

// Templated changes the template of a Run's pods.
func Templated(change func(*corev1.PodTemplateSpec)) RunChange {
	return func(r *rqv1.Run) { change(template(r)) }
}

// Env has the first container of a Run's pods be told something.
func Env(name, value string) RunChange {
	return Templated(func(of *corev1.PodTemplateSpec) {
		of.Spec.Containers[0].Env = append(of.Spec.Containers[0].Env, corev1.EnvVar{Name: name, Value: value})
	})
}

// NeverReady has pods of a Run whose names begin so run and never become ready.
func NeverReady(name string) RunChange { return annotated(UnreadyAnnotation, name) }

// ReadyWithin bounds how long the ranks of a Run take to be ready.
func ReadyWithin(most time.Duration) RunChange {
	return func(r *rqv1.Run) { runtime(r).StartupDeadline = &metav1.Duration{Duration: most} }
}

func annotated(key string, value any) RunChange {
	return func(r *rqv1.Run) {
		of := template(r)
		if of.Annotations == nil {
			of.Annotations = map[string]string{}
		}
		of.Annotations[key] = fmt.Sprint(value)
	}
}

// template is the Run's template, made if need be.
func template(r *rqv1.Run) *corev1.PodTemplateSpec {
	if r.Spec.Template == nil {
		grace := int64(0)
		r.Spec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10.1"}},
		}}
	}
	return r.Spec.Template
}

func runtime(r *rqv1.Run) *rqv1.RunRuntime {
	if r.Spec.Runtime == nil {
		r.Spec.Runtime = &rqv1.RunRuntime{}
	}
	return r.Spec.Runtime
}

// nothing leaves a template as it is: that of a Run that says nothing but what runs.
func nothing(*corev1.PodTemplateSpec) {}

// Told returns what a pod's program is told under a name of its environment.
func Told(pod *corev1.Pod, name string) string {
	for _, v := range pod.Spec.Containers[0].Env {
		if v.Name != name {
			continue
		}
		if from := v.ValueFrom; from != nil && from.FieldRef != nil {
			path := strings.TrimPrefix(from.FieldRef.FieldPath, "metadata.annotations['")
			return pod.Annotations[strings.TrimSuffix(path, "']")]
		}
		return v.Value
	}
	return ""
}
