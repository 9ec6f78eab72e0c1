package workloads

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/controllers"
)

const (
	domainLabel = "fabric.domain"
	gpuResource = "nvidia.com/gpu"
)

// checkGangs fails if a node holds more GPUs than it has or, in a topology-aware workload, a gang spans two domains:
// a fast scheduler that places badly has not done the work.
func checkGangs(tCtx ktesting.TContext) error {
	nodes, err := tCtx.Client().CoreV1().Nodes().List(tCtx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := tCtx.Client().CoreV1().Pods(namespace).List(tCtx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	held := gpusByNode(pods.Items)
	domains := map[string]string{}
	for _, node := range nodes.Items {
		domains[node.Name] = node.Labels[domainLabel]
		room := node.Status.Allocatable[gpuResource]
		if held[node.Name] > room.Value() {
			return fmt.Errorf("node %s holds %d GPUs and has %d", node.Name, held[node.Name], room.Value())
		}
	}
	if !strings.Contains(tCtx.Name(), "/TopologyGangs/") {
		return nil
	}
	return checkDomains(pods.Items, domains)
}

func gpusByNode(pods []corev1.Pod) map[string]int64 {
	held := map[string]int64{}
	for _, pod := range pods {
		for _, container := range pod.Spec.Containers {
			request := container.Resources.Requests[gpuResource]
			held[pod.Spec.NodeName] += request.Value()
		}
	}
	return held
}

func checkDomains(pods []corev1.Pod, domains map[string]string) error {
	domainOf := map[string]string{}
	for _, pod := range pods {
		gang, domain := gangOf(&pod), domains[pod.Spec.NodeName]
		if known, ok := domainOf[gang]; ok && known != domain {
			return fmt.Errorf("gang %s lies in %s and in %s", gang, known, domain)
		}
		domainOf[gang] = domain
	}
	return nil
}

func gangOf(pod *corev1.Pod) string {
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return *group.PodGroupName
	}
	return pod.Labels[rqv1.LabelRun]
}

// checkLeases fails unless every pod's GPUs are on the ledger: open Leases name the nodes and GPUs that the pods hold.
func checkLeases(tCtx ktesting.TContext) error {
	c, err := controllers.NewClient(tCtx.RESTConfig())
	if err != nil {
		return err
	}
	pods, err := tCtx.Client().CoreV1().Pods(namespace).List(tCtx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	leases := &rqv1.LeaseList{}
	if err := c.List(tCtx, leases, client.InNamespace(namespace)); err != nil {
		return err
	}
	if len(leases.Items) != len(pods.Items) {
		return fmt.Errorf("%d pods and %d Leases", len(pods.Items), len(leases.Items))
	}
	owed := gpusByNode(pods.Items)
	for _, lease := range leases.Items {
		if lease.Status.Closed {
			return fmt.Errorf("lease %s is closed: %s", lease.Name, lease.Status.ClosureReason)
		}
		for _, node := range lease.Spec.Slice.Nodes {
			owed[node.Name] -= int64(node.GPUs)
		}
	}
	for node, gpus := range owed {
		if gpus != 0 {
			return fmt.Errorf("node %s: %d GPUs are not on the ledger", node, gpus)
		}
	}
	return nil
}
