package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// gpuResource is what the sample fleet's nodes call their GPUs.
const gpuResource = "nvidia.com/gpu"

// letters gives every Run, by namespace/name, the letter that stands for it: one of its name, or else the next that is
// free.
type letters struct {
	order []string
	of    map[string]byte
}

// add gives a Run its letter, once.
func (l *letters) add(run string) {
	if _, ok := l.of[run]; ok {
		return
	}
	if l.of == nil {
		l.of = map[string]byte{}
	}
	_, name, _ := strings.Cut(run, "/")
	for _, letter := range []byte(strings.ToUpper(name) + "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		if letter >= 'A' && letter <= 'Z' && !l.taken(letter) {
			l.of[run] = letter
			l.order = append(l.order, run)
			return
		}
	}
	panic("more than 26 Runs have no letters")
}

func (l *letters) taken(letter byte) bool {
	for _, other := range l.of {
		if other == letter {
			return true
		}
	}
	return false
}

// paint colours the letter of the n-th Run.
func paint(n int, s string) string { return fmt.Sprintf("\033[%dm%s\033[0m", 31+n%6, s) }

// draw returns the fleet as text: a row for each fast-fabric domain, a cell for each node, a character for each GPU.
// GPUs under an open Lease carry the letter of its Run, which must have one, and free ones a dot.
func draw(nodes []corev1.Node, leases []rqv1.Lease, l *letters, colours bool) string {
	runs, held := holders(nodes, leases)
	rows := map[string][]string{}
	free := 0
	for i := range nodes {
		node := &nodes[i]
		cell, gpus := "", 0
		for n, run := range l.order {
			letters := strings.Repeat(string(l.of[run]), held[node.Name][run])
			gpus += len(letters)
			if colours && letters != "" {
				letters = paint(n, letters)
			}
			cell += letters
		}
		dots := max(0, gpusOf(node)-gpus)
		free += dots
		rows[row(node)] = append(rows[row(node)], node.Name+" "+cell+strings.Repeat(".", dots))
	}
	var out strings.Builder
	for _, name := range sortedKeys(rows) {
		slices.Sort(rows[name])
		fmt.Fprintf(&out, "  %s   %s\n", name, strings.Join(rows[name], "   "))
	}
	out.WriteString("\n  ")
	for n, run := range l.order {
		if runs[run] > 0 {
			letter := string(l.of[run])
			if colours {
				letter = paint(n, letter)
			}
			fmt.Fprintf(&out, "%s %s   ", letter, run)
		}
	}
	fmt.Fprintf(&out, ". free: %d GPUs\n", free)
	return out.String()
}

// holders returns the GPUs that open Leases hold: by Run, and by node and Run.
func holders(nodes []corev1.Node, leases []rqv1.Lease) (runs map[string]int, held map[string]map[string]int) {
	runs, held = map[string]int{}, map[string]map[string]int{}
	for i := range nodes {
		held[nodes[i].Name] = map[string]int{}
	}
	for i := range leases {
		lease := &leases[i]
		if lease.Status.Closed {
			continue
		}
		for _, slice := range lease.Spec.Slice.Nodes {
			runs[runOf(lease)] += int(slice.GPUs)
			if on := held[slice.Name]; on != nil {
				on[runOf(lease)] += int(slice.GPUs)
			}
		}
	}
	return runs, held
}

// row names the row of a node: the domain, and the levels above it.
func row(node *corev1.Node) string {
	return fmt.Sprintf("%s  %s/%s", domain(node), node.Labels["region"], node.Labels["cluster"])
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
