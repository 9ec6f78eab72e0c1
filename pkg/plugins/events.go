package plugins

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// WithoutScheduledEvents has a scheduler write no Scheduled event for pods of Runs. Their Lease tells the same, and a
// started pod is to cost three writes, not four. It is to be called before the scheduler runs.
func WithoutScheduledEvents(s *scheduler.Scheduler) {
	for name, profile := range s.Profiles {
		s.Profiles[name] = quietProfile{profile}
	}
}

type quietProfile struct{ framework.Framework }

func (p quietProfile) EventRecorder() events.EventRecorderLogger {
	return quietRecorder{p.Framework.EventRecorder()}
}

type quietRecorder struct{ events.EventRecorderLogger }

func (r quietRecorder) WithLogger(logger klog.Logger) events.EventRecorderLogger {
	return quietRecorder{r.EventRecorderLogger.WithLogger(logger)}
}

func (r quietRecorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	if pod, ok := regarding.(*corev1.Pod); ok && reason == "Scheduled" && ours(pod) {
		return
	}
	r.EventRecorderLogger.Eventf(regarding, related, kind, reason, action, note, args...)
}
