package plugins

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	schedulingqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// KeepPods has a scheduler's queue keep every pod that comes back from the barrier. Call it before the scheduler runs.
func KeepPods(s *scheduler.Scheduler) {
	var pods corelisters.PodLister
	for _, profile := range s.Profiles { // which share their informers
		pods = profile.SharedInformerFactory().Core().V1().Pods().Lister()
	}
	keepPods(s, pods)
}

func keepPods(s *scheduler.Scheduler, pods corelisters.PodLister) {
	s.SchedulingQueue = keepingQueue{s.SchedulingQueue, s.Cache, pods}
}

// keepingQueue adds a pod again that has come back and is lost. Kubernetes 1.37's queue puts a pod that comes back
// where the next cycle finds it, and only then notes that its last try is over. A cycle that begins in between takes
// the pod for one that is being tried already, and drops it: then it is in no queue, and no call to activate it reaches
// it. That happens to pods that are turned away at the barrier and are called again at once, as a gang's are that is
// planned anew: they come back beside the cycles of others.
type keepingQueue struct {
	schedulingqueue.SchedulingQueue
	cache cache.Cache
	pods  corelisters.PodLister
}

// AddUnschedulablePodIfNotPresent has a pod come back whose try has failed. Before it is looked for it may have been
// tried again and placed, or be gone.
func (q keepingQueue) AddUnschedulablePodIfNotPresent(logger klog.Logger, info *framework.QueuedPodInfo,
	cycle int64) error {
	pod := info.Pod // the queue may change what info holds from now on
	err := q.SchedulingQueue.AddUnschedulablePodIfNotPresent(logger, info, cycle)
	if _, queued := q.GetPod(pod.Name, pod.Namespace, pod.Spec.SchedulingGroup); queued {
		return err
	}
	if now := q.waits(pod); now != nil {
		q.Update(klog.NewContext(context.Background(), logger), now, now) // it adds a pod that is not being tried either
	}
	return err
}

// waits returns a pod as it is by now; nil if it is to be tried no more.
func (q keepingQueue) waits(pod *corev1.Pod) *corev1.Pod {
	now, err := q.pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || now.UID != pod.UID || now.Spec.NodeName != "" || now.DeletionTimestamp != nil {
		return nil
	}
	if assumed, err := q.cache.IsAssumedPod(now); err != nil || assumed {
		return nil
	}
	return now
}
