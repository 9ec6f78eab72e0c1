package integration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// says gives the pods of a Job annotations.
func says(annotations ...string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		for i := 0; i < len(annotations); i += 2 {
			j.Spec.Template.Annotations[annotations[i]] = annotations[i+1]
		}
	}
}

// noFailures has a Job not count what is done to its pods.
func noFailures(j *batchv1.Job) {
	policy := batchv1.PodFailurePolicyActionIgnore
	j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: policy,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}}}
}

// TestAJobIsDrawn: a Job that is drawn for a Run is told so on its pods, whose end its own policy ignores; the pods
// that its controller makes wait as a gang, and go on when there is room.
func TestAJobIsDrawn(t *testing.T) {
	t.Parallel()
	s := newSite(t, ownCluster(t, withoutElection, led("3s")), 1, 2, 64)
	s.startScheduler()
	s.spends()
	s.fund("other", s.envelope("all", 16))
	s.job("victim", 2, 8, noFailures)
	run := s.groupRun("batch", "Job", "victim")
	s.await(run, rqv1.RunRunning, "bound 16 GPUs")
	told := make(chan error, 1)
	go func() { told <- s.seen(run) }()
	s.submit("wanted", 16, s.by("other"))
	s.await("wanted", rqv1.RunRunning, "bound 16 GPUs")
	if err := <-told; err != nil {
		t.Error(err)
	}
	s.await(run, rqv1.RunPending, "")
	eventually(t, "its pods are to wait", func() error {
		pods := s.podsOf(run)
		for _, pod := range pods {
			if pod.Spec.NodeName != "" {
				return fmt.Errorf("pod %s is on %s", pod.Name, pod.Spec.NodeName)
			}
		}
		if len(pods) != 2 {
			return fmt.Errorf("there are %d pods", len(pods))
		}
		return nil
	})
	s.removeRun("wanted")
	s.await(run, rqv1.RunRunning, "bound 16 GPUs")
	s.settled()
}

// seen is an error unless a pod of a Run is told, before it goes, that the scheduler ends it.
func (s *site) seen(run string) error {
	return waitFor(s.t, "what is said", patience, func() error {
		for _, pod := range s.podsOf(run) {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByJobtree" {
					return nil
				}
			}
		}
		return errors.New("no pod has condition DisruptionTarget with reason DeletionByJobtree")
	})
}

// TestAJobIsSpread: pods of a Job that must be spread evenly over nodes or domains, more to each than one, start so.
func TestAJobIsSpread(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 2, 2, 64)
	s.spends()
	for name, c := range map[string]struct {
		key  string
		pods int32
		want []int
	}{
		"nodes":   {key: corev1.LabelHostname, pods: 7, want: []int{1, 2, 2, 2}},
		"domains": {key: "fabric.domain", pods: 6, want: []int{3, 3}},
	} {
		s.job(name, c.pods, 1, func(job *batchv1.Job) {
			job.Spec.Template.Labels = map[string]string{"app": name}
			job.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1,
				TopologyKey: c.key, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: job.Spec.Template.Labels}}}
		})
		run := s.groupRun("batch", "Job", name)
		s.await(run, rqv1.RunRunning, fmt.Sprintf("bound %d GPUs", c.pods))
		on := map[string]int{}
		for node, pods := range s.nodesOf(run) {
			if c.key == "fabric.domain" {
				node = node[:strings.LastIndex(node, "-")]
			}
			on[node] += pods
		}
		same(t, "pods by "+name, c.want, slices.Sorted(maps.Values(on)))
	}
	s.settled()
}

// TestAJobHasSpares: by annotation a spare stands by for a Job, and takes a lost rank's place.
func TestAJobHasSpares(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 3, 64)
	s.spends()
	s.job("train", 2, 8, noFailures, says(rqv1.AnnotationSpares, "8"))
	run := s.groupRun("batch", "Job", "train")
	s.await(run, rqv1.RunRunning, "bound 16 GPUs")
	var lost string
	for _, pod := range s.podsOf(run) {
		if pod.Labels[rqv1.LabelIndex] == "1" && pod.Labels[rqv1.LabelRole] == string(rqv1.RoleActive) {
			lost = pod.Spec.NodeName
		}
	}
	s.strike(lost)
	s.await(run, rqv1.RunRunning, swappedMessage)
	if got := s.closures(run); got[rqv1.ClosedNodeFailure] != 1 || got[rqv1.ClosedSwap] != 1 {
		t.Errorf("Leases closed as %v, want one as NodeFailure and one as Swap", got)
	}
	s.settled()
}

// TestAJobOfMoreThanRunAtOnce: pods of a Job that has more to do than runs at a time take the places of those that are
// done, and its Run is complete when the Job is.
func TestAJobOfMoreThanRunAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 64)
	s.spends()
	const completions = 6
	s.job("sweep", 2, 8, func(j *batchv1.Job) {
		n := int32(completions)
		j.Spec.Completions = &n
		j.Spec.Template.Annotations[stays] = "1s"
	})
	run := s.groupRun("batch", "Job", "sweep")
	s.await(run, rqv1.RunCompleted, "")
	eventually(t, "all are to be done", func() error {
		if got := s.closures(run); got[rqv1.ClosedCompleted] != completions || len(got) != 1 {
			return fmt.Errorf("Leases closed as %v, want %d as Completed", got, completions)
		}
		return nil
	})
	s.settled()
}

// TestAJobIsSuspended: a Job that is suspended has no pods, and holds nothing; its Run starts with it, again and again.
func TestAJobIsSuspended(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 64)
	s.spends()
	job := s.job("train", 2, 8, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) })
	s.submit("first", 8)
	s.await("first", rqv1.RunRunning, "bound 8 GPUs")
	suspend := func(is bool) { edit(s, job, func(j *batchv1.Job) { j.Spec.Suspend = &is }) }
	suspend(false)
	run := s.groupRun("batch", "Job", "train")
	s.await(run, rqv1.RunPending, "short by 8")
	s.removeRun("first")
	s.await(run, rqv1.RunRunning, "bound 16 GPUs")
	suspend(true)
	eventually(t, "it is to hold nothing", func() error {
		if open := s.payers(run); len(open) > 0 {
			return fmt.Errorf("it holds %v", open)
		}
		return nil
	})
	suspend(false)
	eventually(t, "its pods are to run again", func() error {
		bound := 0
		for _, pod := range s.podsOf(run) {
			if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
				bound++
			}
		}
		if open := s.payers(run)[string(s.owner)+"/all own Active"]; bound != 2 || open != 16 {
			return fmt.Errorf("%d are bound, and %d GPUs are paid for", bound, open)
		}
		return nil
	})
	s.await(run, rqv1.RunRunning, "")
	s.resumesHalfDone(job, run, suspend)
	s.settled()
}

// resumesHalfDone has a running Job of two pods be suspended once one of them is done. Its Run goes, although that pod
// is still there, and the Job starts again with the other alone.
func (s *site) resumesHalfDone(job *batchv1.Job, run string, suspend func(bool)) {
	s.t.Helper()
	end := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"pod-complete.stage.kwok.x-k8s.io/delay":"0s"}}}`))
	for _, pod := range s.podsOf(run) {
		if err := s.api.Patch(s.t.Context(), &pod, end); err != nil {
			s.t.Fatal(err)
		}
		break
	}
	eventually(s.t, "a pod is to be done", func() error {
		is := &batchv1.Job{}
		if err := s.api.Get(s.t.Context(), client.ObjectKeyFromObject(job), is); err != nil || is.Status.Succeeded != 1 {
			return fmt.Errorf("%d are: %w", is.Status.Succeeded, err)
		}
		return nil
	})
	suspend(true)
	eventually(s.t, "its Run is to go", func() error {
		if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: run}, &rqv1.Run{}); err == nil {
			return fmt.Errorf("it is there")
		}
		return nil
	})
	suspend(false)
	s.await(run, rqv1.RunRunning, "bound 8 GPUs")
}
