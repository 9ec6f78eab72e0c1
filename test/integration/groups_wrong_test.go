package integration

import (
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// adds makes a pod with GPUs that no Run made; of its words, those whose keys end in "!" are labels, all others
// annotations.
func (s *site) adds(name string, gpus int, words ...string) *corev1.Pod {
	s.t.Helper()
	pod := s.saying(name, gpus, words...)
	s.create(pod)
	return pod
}

// saying is such a pod.
func (s *site) saying(name string, gpus int, words ...string) *corev1.Pod {
	pod := s.foreignPod(name, corev1.ResourceList{gpuResource: resource.MustParse(strconv.Itoa(gpus))})
	pod.Annotations, pod.Labels = map[string]string{}, map[string]string{}
	for i := 0; i < len(words); i += 2 {
		if key, label := strings.CutSuffix(words[i], "!"); label {
			pod.Labels[key] = words[i+1]
		} else {
			pod.Annotations[key] = words[i+1]
		}
	}
	return pod
}

// inGroup are the words of a pod of a group of so many pods.
func inGroup(name, size string) []string {
	return []string{rqv1.AnnotationGroup, name, rqv1.AnnotationGroupSize, size}
}

// half is a Job of two pods of which there is one, since its controller makes none.
func (s *site) half() *batchv1.Job {
	s.t.Helper()
	job := s.job("half", 2, 8, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) })
	s.adds("half-0", 8, "batch.kubernetes.io/job-name!", "half", "batch.kubernetes.io/job-completion-index!", "0")
	return job
}

// TestGroupsThatAreWrong: what is wrong with a group is told on its pods, and hurts nobody. This API server serves no
// PodGroups of either kind, and drops the names of those of its own.
func TestGroupsThatAreWrong(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 3, 64)
	s.spends()
	job := s.job("train", 1, 8)
	s.await(s.groupRun("batch", "Job", "train"), rqv1.RunRunning, "bound 8 GPUs")
	s.adds("mixed-0", 4, inGroup("mixed", "2")...)
	s.adds("mixed-1", 8, inGroup("mixed", "2")...)
	s.adds("theirs-0", 1, inGroup("theirs", "2")...)
	s.adds("theirs-1", 1, append(inGroup("theirs", "2"), rqv1.AnnotationOwner, "org:somebody")...)
	s.adds("odd", 2, rqv1.AnnotationSpares, "3")
	s.adds("long", 1, rqv1.AnnotationMaxDuration, "forever")
	s.adds("unknown", 1, rqv1.AnnotationGPUType, "no-such-type")
	s.member(native, "gang", "dropped")
	s.member(coscheduling, "gang", "not-served")
	// Names of groups that are others', or nobody's.
	s.adds("forged", 8, "batch.kubernetes.io/job-name!", "train", "batch.kubernetes.io/job-completion-index!", "0")
	s.adds("nobodys", 8, "training.kubeflow.org/job-name!", "none", "training.kubeflow.org/operator-name!", "mpi-operator")
	s.adds("here", 1, inGroup("spans", "2")...)
	far := namedSite(t, s.cluster, s.namespace+"-far", 0, 0, 0)
	there := s.saying("there", 1, append(inGroup("spans", "2"), rqv1.AnnotationOwner, string(s.owner))...)
	there.Namespace = far.namespace
	s.create(there)
	s.adds("many", 1, inGroup("many", "10000")...)
	half := s.half()
	led := s.adds("led", 8, "leaderworkerset.sigs.k8s.io/name!", "wide", "leaderworkerset.sigs.k8s.io/group-index!", "0",
		"leaderworkerset.sigs.k8s.io/worker-index!", "0", "leaderworkerset.sigs.k8s.io/size", "10000")
	for pod, words := range map[string]string{
		"mixed-0":    "must ask for the same number",
		"theirs-0":   "they must say the same",
		"odd":        "may not exceed the GPUs of a group",
		"long":       "not a duration of a second or more",
		"unknown":    "and the fleet has",
		"dropped":    "the API server dropped that field: start the API server with --feature-gates=GenericWorkload=true",
		"not-served": "PodGroup/gang of scheduling.x-k8s.io, and the API server serves no such kind",
		"forged":     "all of them are there: another pod gets the place of one that is lost",
		"nobodys":    "the pods name MPIJob/none of kubeflow.org",
		"here":       "waiting for 1 more of the group's 2 pods to be created",
		"many":       "waiting for 9999 more of the group's 10000 pods to be created",
		"led":        "80000 groupsthatarewrong GPUs are needed, and at most 24 fit even when the fleet is empty",
	} {
		s.podTold(pod, words)
	}
	s.await(s.groupRun("batch", "Job", "half"), rqv1.RunPending, "not all of the group's 2 pods have been created")
	far.podTold("there", "waiting for 1 more of the group's 2 pods to be created")
	// Two groups of one name, by what different words say, are two.
	s.adds("right", 8, inGroup("same", "1")...)
	s.adds("too", 8, "kueue.x-k8s.io/pod-group-name!", "same", "kueue.x-k8s.io/pod-group-total-count", "1")
	s.await(s.groupRun("", "Group", "same"), rqv1.RunRunning, "bound 8 GPUs")
	s.await(s.groupRun("", "PodGroup", "same"), rqv1.RunRunning, "bound 8 GPUs")
	s.await(s.groupRun("batch", "Job", "train"), rqv1.RunRunning, "bound 8 GPUs")
	runs := &rqv1.RunList{}
	if err := s.api.List(t.Context(), runs, client.InNamespace(s.namespace)); err != nil || len(runs.Items) != 5 {
		t.Errorf("there are %d Runs (%v), want those of the Jobs, of the groups that are right, and of the one that is too "+
			"large", len(runs.Items), err)
	}
	s.settled()
	for _, object := range []client.Object{job, half, there, led} {
		s.delete(object, client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
}
