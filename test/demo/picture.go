package main

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// gpuResource is what the sample fleet's nodes call their GPUs.
const gpuResource = "nvidia.com/gpu"

// draw returns the fleet as text.
func draw(nodes []corev1.Node, leases []rqv1.Lease, l *picture.Letters, colours bool) (string, error) {
	args, err := config.Parse(nil)
	if err != nil {
		return "", err
	}
	now, o := time.Now(), &picture.Objects{}
	for i := range nodes {
		o.Nodes = append(o.Nodes, &nodes[i])
	}
	for i := range leases {
		o.Leases = append(o.Leases, &leases[i])
	}
	return picture.Text(picture.FleetAt(o, args, now, true), picture.Style{Letters: l, Colours: colours}), nil
}

// holders returns the GPUs that open Leases hold, by node and Run.
func holders(nodes []corev1.Node, leases []rqv1.Lease) map[string]map[string]int {
	held := map[string]map[string]int{}
	for i := range nodes {
		held[nodes[i].Name] = map[string]int{}
	}
	for i := range leases {
		lease := &leases[i]
		for _, slice := range lease.Spec.Slice.Nodes {
			if on := held[slice.Name]; on != nil && !lease.Status.Closed {
				on[runOf(lease)] += int(slice.GPUs)
			}
		}
	}
	return held
}

func domain(node *corev1.Node) string { return node.Labels["fabric.domain"] }

func gpusOf(node *corev1.Node) int {
	quantity := node.Status.Allocatable[gpuResource]
	return int(quantity.Value())
}

func runOf(lease *rqv1.Lease) string {
	return lease.Spec.RunRef.Namespace + "/" + lease.Spec.RunRef.Name
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
