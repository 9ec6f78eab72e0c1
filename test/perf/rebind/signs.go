package rebind

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// sign is one by which a rank is lost whose node is not deleted or out of service, and what takes it back.
type sign struct {
	name string
	// pod has a rank's pod show the sign; nil for one of the node.
	pod func(*corev1.PodStatus)
	// node is the condition by which the node shows it.
	node corev1.NodeConditionType
}

// signs are those that are direct: nobody waits for anything.
var signs = []sign{
	{name: "shutdown", pod: func(s *corev1.PodStatus) {
		s.Phase, s.Reason = corev1.PodFailed, "Terminated"
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: corev1.PodReasonTerminationByKubelet, LastTransitionTime: metav1.Now()})
	}},
	{name: "turned-away", pod: func(s *corev1.PodStatus) {
		s.Phase, s.Reason, s.ContainerStatuses = corev1.PodFailed, "OutOfnvidia.com/gpu", nil
	}},
	{name: "device", pod: func(s *corev1.PodStatus) {
		s.ContainerStatuses[0].AllocatedResourcesStatus = []corev1.ResourceStatus{{Name: "nvidia.com/gpu",
			Resources: []corev1.ResourceHealth{{ResourceID: "GPU-0", Health: corev1.ResourceHealthStatusUnhealthy}}}}
	}},
	{name: "exit", pod: func(s *corev1.PodStatus) {
		s.Phase = corev1.PodFailed
		s.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1,
			Reason: "Error", FinishedAt: metav1.Now()}}
	}},
	{name: "condition", node: "SysLogsXIDError"},
}

// showAll measures all signs, on other gangs each.
func (l *lab) showAll(ctx context.Context, prefix string, samples int) (cases []Case, err error) {
	for i := range signs {
		fmt.Fprintf(os.Stderr, "perf: %s%s\n", prefix, signs[i].name)
		var bound []time.Duration
		for k := range samples {
			took, err := l.show(ctx, &signs[i], l.gang(i*samples+k).rank(k))
			if err != nil {
				return cases, fmt.Errorf("sign %s, sample %d: %w", signs[i].name, k, err)
			}
			bound = append(bound, took)
		}
		cases = append(cases, Case{prefix + signs[i].name, Distribute(bound, singleTarget)})
	}
	return cases, nil
}

// show has a rank show a sign, and returns how long after that it was bound again. The sign goes then.
func (l *lab) show(ctx context.Context, s *sign, rank string) (time.Duration, error) {
	l.view.mu.Lock()
	was := l.view.pods[rank]
	l.view.mu.Unlock()
	began := time.Now()
	if err := l.say(ctx, s, rank, was.node, corev1.ConditionTrue); err != nil {
		return 0, err
	}
	var bound time.Time
	if err := l.view.until(ctx, func() error {
		p, there := l.view.pods[rank]
		if !there || p.uid == was.uid || p.node == "" {
			return fmt.Errorf("rank %s is not bound again", rank)
		}
		bound = p.bound
		return nil
	}); err != nil {
		return 0, err
	}
	if s.node != "" {
		if err := l.say(ctx, s, rank, was.node, corev1.ConditionFalse); err != nil {
			return 0, err
		}
	}
	settled := map[string]any{"metadata": map[string]any{"annotations": map[string]any{rqv1.AnnotationSuspect: nil}}}
	if err := l.patchNodes(ctx, []string{was.node}, settled); err != nil {
		return 0, err
	}
	return bound.Sub(began), l.rest(ctx)
}

// say writes a sign on a rank's pod, or on its node.
func (l *lab) say(ctx context.Context, s *sign, rank, node string, status corev1.ConditionStatus) error {
	if s.pod == nil {
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q,"reason":"Checked"}]}}`, s.node, status)
		_, err := l.Kube.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(patch),
			metav1.PatchOptions{}, "status")
		return err
	}
	pods := l.Kube.CoreV1().Pods(namespace)
	pod, err := pods.Get(ctx, rank, metav1.GetOptions{})
	if err != nil {
		return err
	}
	s.pod(&pod.Status)
	_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}
