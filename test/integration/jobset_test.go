package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// exclusiveTopology gives each Job of a JobSet a domain that no other Job of a JobSet is in.
const exclusiveTopology = "alpha.jobset.sigs.k8s.io/exclusive-topology"

// jobSet creates a JobSet of so many Jobs of two pods of 8 GPUs.
func (s *site) jobSet(name string, jobs int, annotations ...string) *unstructured.Unstructured {
	s.t.Helper()
	js := s.jobSetOf(name, jobs, annotations...)
	s.create(js)
	return js
}

// jobSetOf is such a JobSet. One that is made is deleted with the site.
func (s *site) jobSetOf(name string, jobs int, annotations ...string) *unstructured.Unstructured {
	s.t.Helper()
	text := fmt.Sprintf(`
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {namespace: %s, name: %s}
spec:
  failurePolicy: {maxRestarts: 100}
  replicatedJobs:
  - name: job
    replicas: %d
    template:
      spec:
        parallelism: 2
        completions: 2
        backoffLimit: 0
        template:
          metadata: {annotations: {%s: 1h}}
          spec:
            schedulerName: jobtree
            nodeSelector: {gpu.flavor: %s}
            containers:
            - name: main
              image: registry.k8s.io/pause:3.10.1
              resources: {limits: {nvidia.com/gpu: 8}}
`, s.namespace, name, jobs, stays, s.flavor)
	js := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &js.Object); err != nil {
		s.t.Fatal(err)
	}
	said := map[string]string{rqv1.AnnotationOwner: string(s.owner)}
	for i := 0; i < len(annotations); i += 2 {
		said[annotations[i]] = annotations[i+1]
	}
	js.SetAnnotations(said)
	s.restarting = append(s.restarting, js)
	return js
}

// jobSetSite is a site whose service accounts may spend.
func jobSetSite(t *testing.T, domains, nodes int) *site {
	t.Helper()
	s := newSite(t, liveCluster(t), domains, nodes, 64)
	s.mayUse(s.owner)
	return s
}

// jobSetRun is the name of the Run that stands for a JobSet.
func (s *site) jobSetRun(name string) string {
	run := s.groupRun("jobset.x-k8s.io", "JobSet", name)
	if want := "jobset-" + name + "-"; !strings.HasPrefix(run, want) {
		s.t.Errorf("the Run of JobSet %s is %s, want %sHASH", name, run, want)
	}
	return run
}

// asImagined fails unless the Run that stands for a JobSet is as plan -f has it, which knows of no pods.
func (s *site) asImagined(js *unstructured.Unstructured) {
	s.t.Helper()
	defaults, err := config.Parse(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	groups, err := group.Imagine(group.Rules{
		GPUs:     func(spec *corev1.PodSpec) int { return rank.PodGPUs(spec, gpuResource) },
		FlavorOf: defaults.FlavorOf, FlavorLabel: defaults.FlavorLabel, FabricLevel: defaults.FabricLevel,
		Levels: defaults.TopologyLevels}, []map[string]any{js.Object})
	if err != nil || len(groups) != 1 {
		s.t.Fatalf("%d groups are imagined: %v", len(groups), err)
	}
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.jobSetRun(js.GetName())}}
	if err := s.api.Get(s.t.Context(), client.ObjectKeyFromObject(run), run); err != nil {
		s.t.Fatal(err)
	}
	want := group.Derive(groups[0]).Spec
	if want == nil {
		s.t.Fatalf("no Run is imagined for JobSet %s", js.GetName())
	}
	if diff := cmp.Diff(*want, run.Spec); diff != "" {
		s.t.Errorf("JobSet %s (-imagined +there):\n%s", js.GetName(), diff)
	}
}

// byJob are the pods of a JobSet's Run by the index of their Job, all of them bound.
func (s *site) byJob(run string, pods int) map[string][]corev1.Pod {
	s.t.Helper()
	var out map[string][]corev1.Pod
	eventually(s.t, "the pods of "+run, func() error {
		out = map[string][]corev1.Pod{}
		bound := 0
		for _, pod := range s.podsOf(run) {
			if pod.DeletionTimestamp != nil || pod.Spec.NodeName == "" {
				return fmt.Errorf("pod %s is on %q, told to go at %v", pod.Name, pod.Spec.NodeName, pod.DeletionTimestamp)
			}
			job := pod.Labels["jobset.sigs.k8s.io/job-index"]
			out[job] = append(out[job], pod)
			bound++
		}
		if bound != pods {
			return fmt.Errorf("%d of %d pods are bound", bound, pods)
		}
		return nil
	})
	return out
}

// inDomains returns the domain of each Job of a JobSet by its index, and checks that each is one group of the Run.
func (s *site) inDomains(jobs map[string][]corev1.Pod) map[string]string {
	s.t.Helper()
	out, groups := map[string]string{}, map[string]string{}
	for job, pods := range jobs {
		for _, pod := range pods {
			domain, number := s.domainOf(pod.Spec.NodeName), pod.Labels[rqv1.LabelGroupIndex]
			if was, ok := out[job]; ok && was != domain {
				s.t.Errorf("Job %s is in domains %s and %s", job, was, domain)
			}
			if was, ok := groups[job]; ok && was != number || number != job {
				s.t.Errorf("pod %s of Job %s is in group %q, another in %q", pod.Name, job, number, was)
			}
			out[job], groups[job] = domain, number
		}
	}
	return out
}

// apart is an error unless each of some Jobs has a domain of its own.
func apart(domains map[string]string) error {
	used := map[string]bool{}
	for _, domain := range domains {
		used[domain] = true
	}
	if len(used) != len(domains) {
		return fmt.Errorf("the Jobs are in domains %v", domains)
	}
	return nil
}

// remove deletes a JobSet with all that it has made, and waits until nothing of its Run is left.
func (s *site) remove(js *unstructured.Unstructured) {
	s.t.Helper()
	s.delete(js, client.PropagationPolicy(metav1.DeletePropagationBackground))
	s.awaitGone(s.jobSetRun(js.GetName()))
}

// TestAJobSetIsAGang: a JobSet as it is, with schedulerName and an owner, starts as one Run with a Lease a pod, whose
// groups are its Jobs; when it is deleted all is closed.
func TestAJobSetIsAGang(t *testing.T) {
	t.Parallel()
	s := jobSetSite(t, 2, 3)
	js := s.jobSet("train", 2)
	run := s.jobSetRun("train")
	s.await(run, rqv1.RunRunning, "bound 32 GPUs")
	s.inDomains(s.byJob(run, 4))
	s.asImagined(js)
	s.paidBy(run, map[string]int32{string(s.owner) + "/all own Active": 32})
	open := map[string]int{}
	for _, lease := range s.leasesOf(run) {
		if !lease.Status.Closed {
			open[lease.Node()]++
		}
	}
	on := map[string]int{}
	for _, pod := range s.podsOf(run) {
		on[pod.Spec.NodeName]++
	}
	if diff := cmp.Diff(on, open); diff != "" {
		t.Errorf("pods and Leases by node: %s", diff)
	}
	runs := &rqv1.RunList{}
	if err := s.api.List(t.Context(), runs, client.InNamespace(s.namespace)); err != nil || len(runs.Items) != 1 {
		t.Errorf("there are %d Runs (%v), want one", len(runs.Items), err)
	}

	next := s.jobSet("next", 2)
	waits := s.jobSetRun("next")
	s.await(waits, rqv1.RunPending, "short by")
	for _, pod := range s.podsOf(waits) {
		if pod.Spec.NodeName != "" {
			t.Errorf("pod %s of a JobSet that waits is on %s", pod.Name, pod.Spec.NodeName)
		}
	}
	s.remove(js)
	s.await(waits, rqv1.RunRunning, "bound 32 GPUs")
	s.settled()
	s.remove(next)
}

// TestJobsOfAJobSetApart: Jobs that want a domain each get one, although their controller makes their other pods only
// once the first is bound; a second JobSet that finds one domain waits whole, and starts when it finds two.
func TestJobsOfAJobSetApart(t *testing.T) {
	t.Parallel()
	s := jobSetSite(t, 3, 4)
	first := s.jobSet("first", 2, exclusiveTopology, "fabric.domain")
	run := s.jobSetRun("first")
	s.await(run, rqv1.RunRunning, "bound 32 GPUs")
	s.asImagined(first)
	domains := s.inDomains(s.byJob(run, 4))
	if err := apart(domains); err != nil {
		t.Error(err)
	}

	second := s.jobSet("second", 2, exclusiveTopology, "fabric.domain")
	waits := s.jobSetRun("second")
	s.await(waits, rqv1.RunPending, "")
	if err := s.holdsNothing(waits); err != nil {
		t.Error(err)
	}
	s.settled()
	s.remove(first)
	s.await(waits, rqv1.RunRunning, "bound 32 GPUs")
	if err := apart(s.inDomains(s.byJob(waits, 4))); err != nil {
		t.Error(err)
	}
	if got := s.closures(waits); got[""] != 4 || len(got) != 1 {
		t.Errorf("it has had Leases that were closed as %v, although it was to wait whole", got)
	}
	s.settled()
	s.remove(second)
}

// TestAJobSetLosesANode: its controller makes all of its Jobs anew, and they go on where they were but for the node
// that is lost; a Job whose whole domain is lost goes on in another one.
func TestAJobSetLosesANode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said  []string
		whole bool
	}{
		"Shared": {},
		"Apart":  {said: []string{exclusiveTopology, "fabric.domain"}},
		"Domain": {said: []string{exclusiveTopology, "fabric.domain"}, whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := jobSetSite(t, 3, 3)
			js := s.jobSet("train", 2, c.said...)
			run := s.jobSetRun("train")
			stood := s.await(run, rqv1.RunRunning, "bound 32 GPUs")
			before := s.byJob(run, 4)
			want, lost := s.inDomains(before), []string{before["1"][1].Spec.NodeName}
			if c.whole {
				lost = s.nodesIn(want["1"])
			}
			for _, node := range lost {
				s.strike(node)
			}
			eventually(t, "all pods are to be made anew", func() error { return s.anew(run, before) })
			after := s.byJob(run, 4)
			got := s.inDomains(after)
			if c.whole {
				if err := apart(got); err != nil || got["1"] == want["1"] {
					t.Errorf("Job 1 was in %s, which is lost, and the Jobs are in %v", want["1"], got)
				}
				delete(want, "1")
				delete(got, "1")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("domains of the Jobs: %s", diff)
			}
			was, is := usedBy(before), usedBy(after)
			for _, node := range lost {
				if delete(was, node); is[node] != 0 {
					t.Errorf("a pod is on %s, which is lost", node)
				}
			}
			for node := range was {
				if is[node] != was[node] {
					t.Errorf("pods by node: %v, want those of %v", is, was)
				}
			}
			if again := s.await(run, rqv1.RunRunning, ""); again.UID != stood.UID {
				t.Error("another Run stands for the JobSet")
			}
			s.settled()
			s.remove(js)
		})
	}
}

// nodesIn are the nodes of a domain.
func (s *site) nodesIn(domain string) (names []string) {
	s.t.Helper()
	var nodes corev1.NodeList
	if err := s.api.List(s.t.Context(), &nodes, client.MatchingLabels{"fabric.domain": domain}); err != nil {
		s.t.Fatal(err)
	}
	for i := range nodes.Items {
		names = append(names, nodes.Items[i].Name)
	}
	return names
}

// anew is an error unless all pods of a Run are others than they were, and bound.
func (s *site) anew(run string, before map[string][]corev1.Pod) error {
	old := map[string]bool{}
	for _, pods := range before {
		for _, pod := range pods {
			old[string(pod.UID)] = true
		}
	}
	bound := 0
	for _, pod := range s.podsOf(run) {
		switch {
		case old[string(pod.UID)]:
			return fmt.Errorf("pod %s is there", pod.Name)
		case pod.Spec.NodeName != "":
			bound++
		}
	}
	if bound != len(old) {
		return errors.New("not all are bound")
	}
	return nil
}

// usedBy counts pods by node.
func usedBy(jobs map[string][]corev1.Pod) map[string]int {
	out := map[string]int{}
	for _, pods := range jobs {
		for _, pod := range pods {
			out[pod.Spec.NodeName]++
		}
	}
	return out
}

// domainOf returns the fabric domain of a node by its label.
func (s *site) domainOf(name string) string {
	s.t.Helper()
	node, err := s.kube.CoreV1().Nodes().Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return node.Labels["fabric.domain"]
}
