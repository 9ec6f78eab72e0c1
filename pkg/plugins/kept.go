package plugins

import (
	"context"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulingqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// KeepPods has a scheduler's queue keep every pod that comes back from the barrier. Call it before the scheduler runs.
func KeepPods(s *scheduler.Scheduler) { s.SchedulingQueue = keepingQueue{s.SchedulingQueue} }

// keepingQueue adds a pod again that has come back and is lost. Kubernetes 1.37's queue puts a pod that comes back
// where the next cycle finds it, and only then notes that its last try is over. A cycle that begins in between takes
// the pod for one that is being tried already, and drops it: then it is in no queue, and no call to activate it
// reaches it. That happens to pods that are turned away at the barrier and are called again at once, as a gang's are
// that is planned anew: they come back beside the cycles of others.
type keepingQueue struct {
	schedulingqueue.SchedulingQueue
}

// AddUnschedulablePodIfNotPresent has a pod come back whose try has failed.
func (q keepingQueue) AddUnschedulablePodIfNotPresent(logger klog.Logger, info *framework.QueuedPodInfo,
	cycle int64) error {
	pod := info.Pod // the queue may change what info holds from now on
	err := q.SchedulingQueue.AddUnschedulablePodIfNotPresent(logger, info, cycle)
	if _, queued := q.GetPod(pod.Name, pod.Namespace, pod.Spec.SchedulingGroup); !queued {
		q.Update(klog.NewContext(context.Background(), logger), pod, pod) // it adds a pod that is not being tried either
	}
	return err
}
