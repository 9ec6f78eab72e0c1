package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// machines has nodes be such as the JobSets of GKE's users ask for, two in each domain, which is a node pool.
func (s *site) machines(domain string, numbers ...int) {
	s.t.Helper()
	var nodes []corev1.Node
	for _, n := range numbers {
		node := s.node(fmt.Sprintf("%s-%d", domain, n), domain)
		node.Labels["cloud.google.com/gke-nodepool"] = node.Labels["fabric.domain"]
		node.Labels["cloud.google.com/machine-family"] = "n2"
		node.Labels["node.kubernetes.io/instance-type"] = "n2-standard-64"
		nodes = append(nodes, *node)
	}
	s.load(nodes...)
}

// prioritized has a JobSet of so many Jobs be applied as users of GKE's hot swap write it, with who pays, the
// scheduler and the GPUs added, and how long kwok is to play its pods.
func (s *site) prioritized(level string, jobs int) *unstructured.Unstructured {
	s.t.Helper()
	name := level + "-priority"
	mustCommand(s.t, s.ControlPlane, fmt.Sprintf(`
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: %s
  namespace: %s
  annotations:
    alpha.jobset.sigs.k8s.io/exclusive-topology: cloud.google.com/gke-nodepool
    rq.davidlangworthy.io/owner: %s
spec:
  failurePolicy:
    maxRestarts: 100
  replicatedJobs:
  - name: job
    replicas: %d
    template:
      spec:
        parallelism: 2
        completions: 2
        backoffLimit: 0
        template:
          metadata:
            labels:
              priority: %s
            annotations:
              %s: 1h
          spec:
            schedulerName: jobtree
            hostNetwork: true
            dnsPolicy: ClusterFirstWithHostNet
            nodeSelector:
              cloud.google.com/machine-family: n2
              node.kubernetes.io/instance-type: n2-standard-64
            priorityClassName: %s-prior-job
            containers:
            - name: jax-tpu
              image: python:3.8
              ports:
              - containerPort: 8471
              - containerPort: 8080
              - containerPort: 8431
              securityContext:
                privileged: true
              resources:
                limits:
                  nvidia.com/gpu: 8
`, name, s.namespace, s.owner, jobs, level, stays, level), "apply -f -")
	js := &unstructured.Unstructured{}
	js.SetAPIVersion("jobset.x-k8s.io/v1alpha2")
	js.SetKind("JobSet")
	js.SetNamespace(s.namespace)
	js.SetName(name)
	return js
}

// TestHotSwapOfJobSets is what users of hot swap on GKE do: a node of a JobSet of high priority fails, and its pool has
// no other. Its Job goes on in another pool as a whole: in a free one, else in that of a JobSet of low priority, which
// waits, and goes on when there is room. That one has a single Job, and goes on as well when it loses a node itself.
func TestHotSwapOfJobSets(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 0, 0, 64)
	s.mayUse(s.owner)
	for d := range 5 {
		s.machines(fmt.Sprintf("d%d", d), 0, 1)
	}
	mustCommand(t, s.ControlPlane, "", fmt.Sprintf("annotate namespace %s %s=%s", s.namespace, rqv1.AnnotationGPUType,
		s.flavor))
	for name, value := range map[string]int{"high-prior-job": 2000000, "low-prior-job": 1000000} {
		s.class(name, value)
	}
	hero, batch := s.prioritized("high", 3), s.prioritized("low", 1)
	high, low := s.jobSetRun(hero.GetName()), s.jobSetRun(batch.GetName())
	s.await(high, rqv1.RunRunning, "bound 48 GPUs")
	s.await(low, rqv1.RunRunning, "bound 16 GPUs")

	want := s.inDomains(s.byJob(high, 6))
	taken := s.inDomains(s.byJob(low, 2))["0"]
	want["1"] = s.unused(5, want["0"], want["1"], want["2"], taken)
	s.goesOn(high, "1", want)
	if got := s.closures(low); got[""] != 2 || len(got) != 1 {
		t.Errorf("the Leases of low priority are closed as %v, although a pool was free", got)
	}

	left := want["2"]
	want["2"] = taken
	s.goesOn(high, "2", want)
	s.await(low, rqv1.RunPending, "")
	if got := s.closures(low); got[rqv1.ClosedPriorityPreempt] != 2 {
		t.Errorf("the Leases of low priority are closed as %v", got)
	}
	for command, words := range map[string][]string{
		"list -o wide": {"2000000 (high-prior-job)", "1000000 (low-prior-job)"},
		"explain " + low: {"PriorityPreempt", "for a lost rank of Run " + s.namespace + "/JobSet/" + hero.GetName(),
			"priority 1000000 (low-prior-job)"},
	} {
		said := s.runs(command + " -n " + s.namespace)
		for _, want := range words {
			if !strings.Contains(said, want) {
				t.Errorf("kubectl runs %s does not say %q:\n%s", command, want, said)
			}
		}
	}
	s.machines(strings.TrimPrefix(left, s.namespace+"-"), 2)
	s.await(low, rqv1.RunRunning, "bound 16 GPUs")
	if got := s.inDomains(s.byJob(low, 2))["0"]; got != left {
		t.Errorf("the JobSet of low priority goes on in %s, want %s", got, left)
	}
	s.settled()
	s.remove(hero)
	eventually(s.t, hero.GetName()+" is to be gone", func() error {
		if _, err := s.get(high); err == nil {
			return fmt.Errorf("its Run is there")
		}
		return nil
	})
	s.moveOn(low, "0", 1) // a single Job is a group like one of several
	if got := s.inDomains(s.byJob(low, 2))["0"]; got == left {
		t.Errorf("the JobSet of low priority has stayed in %s", got)
	}
	s.settled()
	s.remove(batch)
}

// unused is the first of some domains that is none of others.
func (s *site) unused(domains int, used ...string) string {
	s.t.Helper()
	for d := range domains {
		if name := fmt.Sprintf("%s-d%d", s.namespace, d); !slices.Contains(used, name) {
			return name
		}
	}
	s.t.Fatalf("all domains are used: %v", used)
	return ""
}

// goesOn has the node of a Job's second pod fail, and waits until all Jobs of the JobSet run in some domains.
func (s *site) goesOn(run, job string, want map[string]string) {
	s.t.Helper()
	s.moveOn(run, job, len(want))
	if diff := cmp.Diff(want, s.inDomains(s.byJob(run, 2*len(want)))); diff != "" {
		s.t.Fatalf("domains of the Jobs (-want +got):\n%s", diff)
	}
}

// moveOn has the node of a Job's second pod fail, and waits until all pods of the JobSet's Jobs are made anew and run.
// The JobSet does not wait for its turn again.
func (s *site) moveOn(run, job string, jobs int) {
	s.t.Helper()
	before, began := s.byJob(run, 2*jobs), time.Now()
	unwound := s.closures(run)[rqv1.ClosedUnwound]
	s.strike(before[job][1].Spec.NodeName)
	eventually(s.t, "all pods are to be made anew", func() error { return s.anew(run, before) })
	s.t.Logf("from sign to bound: %s", time.Since(began))
	s.await(run, rqv1.RunRunning, "")
	if got := s.closures(run); got[rqv1.ClosedUnwound] > unwound {
		s.t.Errorf("the JobSet has been requeued: its Leases are closed as %v", got)
	}
}

// TestExclusiveDomainsAreOthers has the Jobs of a JobSet ask for node pools of their own where groups stay within other
// domains, each of which has nodes of two pools: it does not start in part, it is told which rule keeps it from
// starting, and a plan says which label was meant.
func TestExclusiveDomainsAreOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 0, 0, 64)
	s.mayUse(s.owner)
	var nodes []corev1.Node
	for d := range 2 {
		for n := range 2 {
			node := s.node(fmt.Sprintf("d%d-%d", d, n), fmt.Sprintf("d%d", d))
			node.Labels["cloud.google.com/gke-nodepool"] = fmt.Sprintf("%s-pool-%d", s.namespace, n)
			nodes = append(nodes, *node)
		}
	}
	s.load(nodes...)
	js := s.jobSetOf("train", 1, exclusiveTopology, "cloud.google.com/gke-nodepool")
	text, err := json.Marshal(js.Object)
	if err != nil {
		t.Fatal(err)
	}
	const advice = "set fabricLevel to cloud.google.com/gke-nodepool if its domains are others"
	if out := mustCommand(t, s.ControlPlane, string(text), "runs plan -f -"); !strings.Contains(out, advice) {
		t.Errorf("a plan does not say %q:\n%s", advice, out)
	}
	s.create(js)
	run := s.jobSetRun("train")
	s.awaitRefusal(run, "NodesRejected", "node(s) didn't match pod affinity rules")
	s.awaitRefusal(run, "NodesRejected", advice)
	if err := s.holdsNothing(run); err != nil {
		t.Error(err)
	}
	s.settled()
	s.remove(js)
}
