package audit

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// nodes finds GPUs that are held twice (I1). What a node had when a Lease was opened is not known: a device that falls
// ill is no longer allocatable and still counts to its capacity, so that what is held beyond the one and within the
// other fell later.
func (s *sight) nodes() {
	leased, used, foreign := map[string]int{}, map[string]int{}, map[string]int{}
	on := map[string][]*rqv1.Lease{}
	for _, lease := range s.Leases {
		if lease.Status.Closed || lease.Spec.Slice.Role == rqv1.RoleBorrowed {
			continue
		}
		for _, held := range lease.Spec.Slice.Nodes {
			leased[held.Name] += int(held.GPUs)
			on[held.Name] = append(on[held.Name], lease)
		}
	}
	for _, pod := range s.Pods {
		switch {
		case pod.Spec.NodeName == "" || rank.Ended(pod):
		case ours(pod):
			used[pod.Spec.NodeName] += s.gpus(pod)
		default:
			foreign[pod.Spec.NodeName] += s.gpus(pod)
		}
	}
	for _, name := range sorted(s.nodesBy) {
		node := s.nodesBy[name]
		room, capacity := s.GPUResource.Sum(node.Status.Allocatable), s.GPUResource.Sum(node.Status.Capacity)
		capacity = max(room, capacity)
		most, what := leased[name], "GPU leases that are not opportunistic"
		if used[name] > most {
			most, what = used[name], "pods that jobtree placed"
		}
		about := append([]Object{object("Node", node)}, leaseObjects(on[name])...)
		switch {
		case most > capacity && capacity > 0:
			s.find("I1", "", about, "node %s has %d GPUs, and %s hold %d", name, capacity, what, most)
		case most > room:
			s.note(Information, "I1", "", about, "node %s has %d GPUs left to hand out, and %s hold %d: it has lost some "+
				"since they began",
				name, room, what, most)
		case foreign[name] > 0 && used[name]+foreign[name] > capacity:
			s.note(Information, "I1", "foreign", about[:1],
				"node %s has %d GPUs, and pods hold %d, of which %d were placed by others than jobtree",
				name, capacity, used[name]+foreign[name], foreign[name])
		}
	}
}

// groups finds groups that lie in more than one domain (I6), by the labels that nodes have now.
func (s *sight) groups() {
	for _, run := range s.Runs {
		l := run.Spec.Locality
		if l == nil || l.GroupGPUs == nil && (l.AllowCrossGroupSpread == nil || *l.AllowCrossGroupSpread) {
			continue
		}
		whole := l.AllowCrossGroupSpread != nil && !*l.AllowCrossGroupSpread
		domains := map[string]string{}
		for _, pod := range s.runPods[run.UID] {
			domain := s.domainOf(pod)
			if domain == "" || rank.Ended(pod) {
				continue
			}
			group := "group " + pod.Labels[rqv1.LabelGroupIndex]
			if whole {
				group = "the Run"
			}
			if other, seen := domains[group]; seen && other != domain {
				s.find("I6", group, []Object{object("Run", run), object("Pod", pod)}, "%s of Run %s lies in %s and in %s", group,
					nameOf(run),
					min(other, domain), max(other, domain))
			}
			domains[group] = domain
		}
	}
}

// domainOf returns the domain that a pod is bound in; empty when it is not known.
func (s *sight) domainOf(pod *corev1.Pod) string {
	node := s.nodesBy[pod.Spec.NodeName]
	if node == nil {
		return ""
	}
	var values []string
	for _, key := range s.Domain {
		value := node.Labels[key]
		if value == "" {
			return "" // the node is left out, and reported
		}
		values = append(values, value)
	}
	return strings.Join(values, "/")
}
