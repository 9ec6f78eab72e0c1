package main

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// gpuResource is what the sample fleet's nodes call their GPUs.
const gpuResource = "nvidia.com/gpu"

// objects are what pictures are drawn from.
func (w *world) objects() *picture.Objects {
	return &picture.Objects{Nodes: pointers(w.nodes), Runs: pointers(w.runs), Leases: pointers(w.leases),
		Reservations: pointers(w.reservations)}
}

func pointers[T any](of []T) []*T {
	out := make([]*T, len(of))
	for i := range of {
		out[i] = &of[i]
	}
	return out
}

// fleet is who is on which node now.
func (w *world) fleet() ([]picture.Node, error) {
	args, err := config.Parse(nil)
	if err != nil {
		return nil, err
	}
	return picture.FleetAt(w.objects(), args, time.Now(), true), nil
}

// keep writes pictures of the fleet and of time, from the beginning to a little ahead, to a directory.
func (s *stage) keep(w *world, dir string) error {
	args, err := config.Parse(nil)
	if err != nil {
		return err
	}
	nodes, err := w.fleet()
	if err != nil {
		return err
	}
	now := time.Now()
	from, to := now.Add(-time.Second), now.Add(20*time.Second)
	owners := map[string]string{}
	for i := range w.leases {
		owners[runOf(&w.leases[i])] = string(w.leases[i].Spec.Owner)
		if start := w.leases[i].Spec.Start.Time; start.Before(from) {
			from = start
		}
	}
	for i := range w.runs {
		owners[w.runs[i].Namespace+"/"+w.runs[i].Name] = string(w.runs[i].Spec.Owner)
	}
	bars := picture.Timeline(w.objects(), args, picture.ByDomain, from, to, now)
	for name, text := range map[string]string{"fleet.svg": picture.FleetSVG(nodes, &s.letters, owners),
		"time.svg": picture.TimeSVG(bars, from, to, now)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
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
