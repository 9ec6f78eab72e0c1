package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// stays has kwok leave a pod of a Job running: it completes those that say nothing.
const stays = "pod-complete.stage.kwok.x-k8s.io/delay"

// spends lets the service accounts of the site's namespace spend as its owner, and has the namespace name it.
func (s *site) spends() {
	s.t.Helper()
	edit(s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, func(n *corev1.Namespace) {
		n.Annotations = map[string]string{rqv1.AnnotationOwner: string(s.owner)}
	})
	s.mayUse(s.owner)
}

func (s *site) mayUse(owner rqv1.Owner) {
	s.t.Helper()
	meta := metav1.ObjectMeta{Namespace: s.namespace, Name: "spends"}
	s.create(&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{rqv1.GroupName},
		Resources: []string{"owners"}, Verbs: []string{"use"}, ResourceNames: []string{string(owner)}}}})
	s.create(&rbacv1.RoleBinding{ObjectMeta: meta,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "spends"},
		Subjects: []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName,
			Name: "system:serviceaccounts:" + s.namespace}}})
}

// template is of pods for jobtree that ask for GPUs of the site.
func (s *site) template(gpus int) corev1.PodTemplateSpec {
	limits := corev1.ResourceList{}
	if gpus > 0 {
		limits[gpuResource] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{stays: "1h"}},
		Spec: corev1.PodSpec{SchedulerName: rqv1.SchedulerName, RestartPolicy: corev1.RestartPolicyNever,
			NodeSelector: map[string]string{"gpu.flavor": s.flavor},
			Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10.1",
				Resources: corev1.ResourceRequirements{Limits: limits}}}},
	}
}

// jobOf is an indexed Job of so many pods.
func (s *site) jobOf(name string, pods int32, gpus int) *batchv1.Job {
	return &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: batchv1.JobSpec{Parallelism: &pods, Completions: &pods, CompletionMode: ptr.To(batchv1.IndexedCompletion),
			Template: s.template(gpus)}}
}

// job creates an indexed Job of so many pods.
func (s *site) job(name string, pods int32, gpus int, changes ...func(*batchv1.Job)) *batchv1.Job {
	job := s.jobOf(name, pods, gpus)
	for _, change := range changes {
		change(job)
	}
	s.create(job)
	return job
}

// groupRun is the name of the Run that stands for a group.
func (s *site) groupRun(api, kind, name string) string {
	return group.RunName(group.Key{Namespace: s.namespace, API: api, Kind: kind, Name: name})
}

// tells fails unless a command line of "kubectl runs" about the site's namespace writes some words.
func (s *site) tells(stdin any, line string, words ...string) {
	s.t.Helper()
	text, err := json.Marshal(stdin)
	if err != nil {
		s.t.Fatal(err)
	}
	told := mustCommand(s.t, s.ControlPlane, string(text), "runs "+line+" -n "+s.namespace)
	for _, want := range words {
		if !strings.Contains(told, want) {
			s.t.Errorf("runs %s lacks %q:\n%s", line, want, told)
		}
	}
}

// TestAJobIsAGang: a Job as it is, with schedulerName and an owner, starts as a gang with a Lease a pod, or waits as
// one; when it is deleted all is closed. What people see of it is told beforehand, and has its own name.
func TestAJobIsAGang(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 64)
	s.spends()
	s.tells(s.jobOf("train", 3, 8), "plan -f -", s.namespace+"/Job/train", "now, with 24 GPUs",
		"paid by "+s.namespace+"/all")
	first := s.job("train", 3, 8)
	run := s.groupRun("batch", "Job", "train")
	s.await(run, rqv1.RunRunning, "bound 24 GPUs")
	w, err := s.look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]int32{}
	for i := range w.leases {
		l := &w.leases[i]
		if l.Spec.RunRef.Name == run && !l.Status.Closed {
			held[l.Spec.Payer.Budget+"/"+l.Spec.PaidByEnvelope] += l.GPUs()
		}
	}
	if len(held) != 1 || held[s.namespace+"/all"] != 24 {
		t.Errorf("Leases hold %v, want 24 GPUs of %s/all", held, s.namespace)
	}
	for _, pod := range s.podsOf(run) {
		if index := pod.Labels["batch.kubernetes.io/job-completion-index"]; index != pod.Labels[rqv1.LabelIndex] {
			t.Errorf("pod %s of index %s has rank %s", pod.Name, index, pod.Labels[rqv1.LabelIndex])
		}
	}

	s.tells(nil, "list", "\nJob/train ")
	s.tells(nil, "explain job/train", "Run "+s.namespace+"/Job/train is Running")
	s.tells(nil, "leases JOB/train --open", "\nJob/train ")

	s.tells(s.jobOf("waits", 2, 8), "plan -f -", s.namespace+"/Job/waits", "InsufficientGPUs")
	s.job("waits", 2, 8)
	second := s.groupRun("batch", "Job", "waits")
	s.await(second, rqv1.RunPending, "short by 8")
	for _, pod := range s.podsOf(second) {
		if pod.Spec.NodeName != "" {
			t.Errorf("pod %s of a Job that waits is on %s", pod.Name, pod.Spec.NodeName)
		}
	}
	if err := s.api.Delete(t.Context(), first, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	s.await(second, rqv1.RunRunning, "bound 16 GPUs")
	s.awaitGone(run)
	s.settled()
}

// TestPodsOfNobodyAreTold: pods whose owner is not named, or not allowed, stay Pending with the sentence that mends it,
// and start when it is mended. What stands for a pod that is lost, and that nobody makes anew, goes.
func TestPodsOfNobodyAreTold(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 1, 8)
	says := func(name, words string) {
		t.Helper()
		eventually(t, "pod "+name, func() error {
			node, why, err := s.scheduled(name)
			if err != nil || node != "" || !strings.HasPrefix(why, "NotServed: ") || !strings.Contains(why, words) {
				return errors.Join(err, fmt.Errorf("it is on %q, told %q", node, why))
			}
			return nil
		})
	}
	gpus := corev1.ResourceList{gpuResource: resource.MustParse("8")}
	s.create(s.foreignPod("nobody", gpus))
	says("nobody", "add annotation "+rqv1.AnnotationOwner)
	owned := s.foreignPod("somebody", gpus)
	owned.Annotations = map[string]string{rqv1.AnnotationOwner: string(s.owner)}
	s.create(owned)
	says("somebody", "may not spend as "+string(s.owner))
	s.mayUse(s.owner)
	run := s.groupRun("", "Pod", "somebody")
	s.await(run, rqv1.RunRunning, "bound 8 GPUs")
	s.settled()
	node, _, err := s.scheduled("somebody")
	if err != nil {
		t.Fatal(err)
	}
	s.strike(node) // nobody makes the pod anew
	s.awaitGone(run)
	if got := s.closures(run); got[rqv1.ClosedNodeFailure] != 1 || len(got) != 1 {
		t.Errorf("Leases closed as %v, want one as NodeFailure", got)
	}
}

// TestAJobLosesANode: the pod that its controller makes for a lost one takes its rank elsewhere, at once; the others
// are left alone, and when the Job is complete so is its Run.
func TestAJobLosesANode(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 64)
	s.spends()
	s.job("train", 3, 8)
	run := s.groupRun("batch", "Job", "train")
	s.await(run, rqv1.RunRunning, "bound 24 GPUs")
	before := map[string]corev1.Pod{}
	for _, pod := range s.podsOf(run) {
		before[pod.Labels[rqv1.LabelIndex]] = pod
	}
	s.strike(before["1"].Spec.NodeName)
	eventually(t, "the replacement", func() error {
		for _, pod := range s.podsOf(run) {
			was := before[pod.Labels[rqv1.LabelIndex]]
			switch again := pod.UID != was.UID; {
			case pod.DeletionTimestamp != nil:
			case again && pod.Labels[rqv1.LabelIndex] != "1":
				return fmt.Errorf("pod %s of rank %s was made anew", pod.Name, pod.Labels[rqv1.LabelIndex])
			case again && pod.Spec.NodeName != "" && pod.Spec.NodeName != was.Spec.NodeName:
				return nil
			}
		}
		return errors.New("rank 1 is not replaced")
	})
	if got := s.closures(run); got[rqv1.ClosedNodeFailure] != 1 || len(got) > 2 {
		t.Errorf("Leases closed as %v, want one as NodeFailure", got)
	}
	s.succeed(run)
	s.await(run, rqv1.RunCompleted, "")
	s.settled()
}

// TestGroupsByTheirWords: pods are a gang by our annotations, and as Kueue writes a group; one that lacks a pod waits,
// and pods that ask for no GPUs start with the others and pay nothing.
func TestGroupsByTheirWords(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 64)
	s.spends()
	gpus := corev1.ResourceList{gpuResource: resource.MustParse("8")}
	add := func(name string, asks corev1.ResourceList, labels, annotations map[string]string) {
		pod := s.foreignPod(name, asks)
		pod.Labels, pod.Annotations = labels, annotations
		s.create(pod)
	}
	ours := map[string]string{rqv1.AnnotationGroup: "ours", rqv1.AnnotationGroupSize: "3"}
	add("head", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}, nil, ours)
	add("one", gpus, nil, ours)
	kueue := map[string]string{"kueue.x-k8s.io/pod-group-name": "kueues"}
	total := map[string]string{"kueue.x-k8s.io/pod-group-total-count": "1"}
	add("alone", gpus, kueue, total)
	s.await(s.groupRun("", "PodGroup", "kueues"), rqv1.RunRunning, "bound 8 GPUs")
	for _, name := range []string{"head", "one"} {
		if node, _, err := s.scheduled(name); err != nil || node != "" {
			t.Errorf("pod %s of a group that is not whole is on %q: %v", name, node, err)
		}
	}
	add("two", gpus, nil, ours)
	run := s.groupRun("", "Group", "ours")
	s.await(run, rqv1.RunRunning, "bound 16 GPUs")
	eventually(t, "the pod without GPUs", func() error {
		node, why, err := s.scheduled("head")
		if err == nil && node == "" {
			err = fmt.Errorf("it waits: %s", why)
		}
		return err
	})
	if pods := s.podsOf(run); len(pods) != 2 {
		t.Errorf("the Run has %d pods, want those with GPUs", len(pods))
	}
	for _, name := range []string{"one", "two", "alone"} {
		s.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}})
	}
	s.awaitGone(run)
	s.settled()
}
