package plugins

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// TellOfRuns has a scheduler tell what becomes of the pods of Runs where everything of Runs is told, and not in the
// events of its own, of which one swallows the next of the same pod whatever it says; nil has it tell itself. That they
// are scheduled it does not tell at all: their Lease does, and a started pod is to cost three writes, not four. Call it
// before the scheduler runs.
func TellOfRuns(s *scheduler.Scheduler, to events.EventRecorder) {
	for name, profile := range s.Profiles {
		s.Profiles[name] = tellingProfile{profile, to}
	}
}

type tellingProfile struct {
	framework.Framework
	runs events.EventRecorder
}

func (p tellingProfile) EventRecorder() events.EventRecorderLogger {
	return tellingRecorder{p.Framework.EventRecorder(), p.runs}
}

type tellingRecorder struct {
	events.EventRecorderLogger
	runs events.EventRecorder
}

func (r tellingRecorder) WithLogger(logger klog.Logger) events.EventRecorderLogger {
	return tellingRecorder{r.EventRecorderLogger.WithLogger(logger), r.runs}
}

func (r tellingRecorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	pod, ok := regarding.(*corev1.Pod)
	switch {
	case !ok || !ours(pod) || reason != "Scheduled" && r.runs == nil:
		r.EventRecorderLogger.Eventf(regarding, related, kind, reason, action, note, args...)
	case reason != "Scheduled":
		about := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
		about.APIVersion, about.Kind = "v1", "Pod"
		r.runs.Eventf(about, related, kind, reason, action, note, args...)
	}
}
