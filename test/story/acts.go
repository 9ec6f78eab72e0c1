package story

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// Teller tells a story: first verbs of acting, then verbs of seeing. Nodes, owners and Budgets are named within the
// story's site: node d0-1 is the second of domain d0, and owner team is below the site's own.
type Teller struct {
	T
	Cluster
	args *config.Args
	site Site
}

// must ends the test if something that somebody does is refused.
func (s *Teller) must(err error) {
	s.T.Helper()
	if err != nil {
		s.Fatalf("%v", err)
	}
}

// Nodes makes nodes of 8 GPUs in a domain: d-0, d-1, ... in domain d.
func (s *Teller) Nodes(domain string, count int, changes ...NodeChange) {
	s.T.Helper()
	var nodes []client.Object
	for i := range count {
		nodes = append(nodes, s.newNode(fmt.Sprintf("%s-%d", domain, i), domain, changes))
	}
	s.must(s.Create(nodes...))
}

// Node makes one node in a domain.
func (s *Teller) Node(name, domain string, changes ...NodeChange) {
	s.T.Helper()
	s.must(s.Create(s.newNode(name, domain, changes)))
}

func (s *Teller) newNode(name, domain string, changes []NodeChange) *corev1.Node {
	node := s.site.node(name, domain)
	for _, change := range changes {
		change(node)
	}
	return node
}

// ChangeNode has somebody change a node, or the node say something of itself.
func (s *Teller) ChangeNode(name string, changes ...NodeChange) {
	s.T.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.full(name)}}
	s.must(s.Change(node, func() {
		for _, change := range changes {
			change(node)
		}
	}))
}

// Lose has somebody say that a node is out of service: it is lost, with all that is on it.
func (s *Teller) Lose(node string) {
	s.T.Helper()
	s.ChangeNode(node, Tainted(corev1.TaintNodeOutOfService, "nodeshutdown", corev1.TaintEffectNoExecute))
}

// RemoveNode deletes a node.
func (s *Teller) RemoveNode(name string) {
	s.T.Helper()
	s.must(s.Delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.full(name)}}))
}

// Fund gives an owner envelopes, instead of those that it has. The owner is below the site's own, or it itself if the
// path is empty.
func (s *Teller) Fund(path string, envelopes ...rqv1.Envelope) {
	s.T.Helper()
	b := &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: s.BudgetName(path)},
		Spec: rqv1.BudgetSpec{Owner: s.Owner(path)}}
	for i := range envelopes {
		if envelopes[i].Flavor == "" {
			envelopes[i].Flavor = s.site.Flavor
		}
	}
	for _, is := range s.World().Budgets {
		if is.Name == b.Name {
			s.must(s.Change(b, func() { b.Spec.Envelopes = envelopes }))
			return
		}
	}
	b.Spec.Envelopes = envelopes
	s.must(s.Create(b))
}

// Defund deletes an owner's Budget.
func (s *Teller) Defund(path string) {
	s.T.Helper()
	s.must(s.Delete(&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: s.BudgetName(path)}}))
}

// Submit creates a Run of so many GPUs, which its owner's money pays for.
func (s *Teller) Submit(name string, gpus int32, changes ...RunChange) {
	s.T.Helper()
	run := s.run(name)
	run.Spec = rqv1.RunSpec{Owner: s.site.Owner, Resources: rqv1.RunResources{GPUType: s.site.Flavor, TotalGPUs: gpus}}
	for _, change := range changes {
		change(run)
	}
	s.must(s.Create(run))
}

// Edit changes a Run.
func (s *Teller) Edit(name string, changes ...RunChange) {
	s.T.Helper()
	run := s.run(name)
	s.must(s.Change(run, func() {
		for _, change := range changes {
			change(run)
		}
	}))
}

// Remove deletes a Run.
func (s *Teller) Remove(name string) {
	s.T.Helper()
	s.must(s.Delete(s.run(name)))
}

func (s *Teller) run(name string) *rqv1.Run {
	return &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: s.site.Namespace, Name: name}}
}

// DeletePod deletes a pod.
func (s *Teller) DeletePod(name string) {
	s.T.Helper()
	s.must(s.Delete(s.pod(name)))
}

// DeletePodByForce deletes a pod's object at once, whatever its containers do.
func (s *Teller) DeletePodByForce(name string) {
	s.T.Helper()
	s.must(s.Delete(s.pod(name), client.GracePeriodSeconds(0)))
}

func (s *Teller) pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.site.Namespace, Name: name}}
}

// EvictPod asks that a pod be evicted, and reports whether it is.
func (s *Teller) EvictPod(name string) bool { return s.Evict(name) == nil }

// Exit has the kubelet of a pod that runs say how it has ended, and returns its node.
func (s *Teller) Exit(name string, how Ending) (node string) {
	s.T.Helper()
	s.Until("pod "+name+" is to run, so that it can end", func() error {
		for _, pod := range s.World().Pods {
			if pod.Name == name && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				node = s.short(pod.Spec.NodeName)
				return nil
			}
		}
		return fmt.Errorf("it does not")
	})
	pod := s.pod(name)
	s.must(s.Change(pod, func() { how(pod, metav1.NewTime(s.Now())) }))
	return node
}

// Finish has all ranks of a Run succeed.
func (s *Teller) Finish(run string) {
	s.T.Helper()
	pods := s.Pods(run)
	for _, name := range sortedKeys(pods) {
		if pods[name].Labels[rqv1.LabelRole] != string(rqv1.RoleSpare) {
			s.Exit(name, Well)
		}
	}
}

// Occupy makes a pod on a node that is nobody's Run: it holds so much of some resources.
func (s *Teller) Occupy(name, node string, with corev1.ResourceList, changes ...func(*corev1.Pod)) {
	s.T.Helper()
	grace, pod := int64(0), s.pod(name)
	pod.Spec = corev1.PodSpec{NodeName: s.full(node), TerminationGracePeriodSeconds: &grace,
		Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10.1",
			Resources: corev1.ResourceRequirements{Limits: with, Requests: with}}}}
	for _, change := range changes {
		change(pod)
	}
	s.must(s.Create(pod))
}

// GPUs are so many GPUs, for Occupy.
func GPUs(count int64) corev1.ResourceList {
	return corev1.ResourceList{gpuResource: *resource.NewQuantity(count, resource.DecimalSI)}
}

// CPUs are so many processors.
func CPUs(count int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(count, resource.DecimalSI)}
}

// Later lets so much time pass.
func (s *Teller) Later(d time.Duration) {
	s.T.Helper()
	s.must(s.During(d, func() error { return nil }))
}

// Owner is an owner below the site's own, or it itself if the path is empty; BudgetName is its Budget's name.
func (s *Teller) Owner(path string) rqv1.Owner {
	if path == "" {
		return s.site.Owner
	}
	return s.site.Owner + ":" + rqv1.Owner(path)
}

// BudgetName is the name of an owner's Budget.
func (s *Teller) BudgetName(path string) string {
	if path == "" {
		return s.site.Namespace
	}
	return s.site.Namespace + "-" + strings.ReplaceAll(path, ":", "-")
}

// By has a Run spend as an owner below the site's own.
func (s *Teller) By(path string) RunChange { return func(r *rqv1.Run) { r.Spec.Owner = s.Owner(path) } }

// full is the name of a node, and short what a story calls it.
func (s *Teller) full(node string) string { return s.site.Namespace + "-" + node }
