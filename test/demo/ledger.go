package main

import (
	"fmt"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// contradictions checks what must hold whatever has happened, and says what does not: nodes hold no more than they have
// (I1), a bound pod of a Run has one open Lease on its own node and an open Lease has its pod (I2), envelopes pay for
// no more than their cap (I3), a group lies in one domain (I6).
func (w *world) contradictions() []string {
	out := slices.Concat(w.unpaid(), w.overfull(), w.overspent())
	order, found := w.shares(false)
	for _, s := range order {
		if domains := w.domains(found[s].nodes); len(domains) != 1 && w.grouped(s.run) {
			out = append(out, fmt.Sprintf("group %d of %s lies in domains %v", s.group, s.run, domains))
		}
	}
	return out
}

// grouped reports whether the groups of a Run may not leave their domains.
func (w *world) grouped(name string) bool {
	return slices.ContainsFunc(w.runs, func(run rqv1.Run) bool {
		return run.Namespace+"/"+run.Name == name && run.Spec.Locality != nil && run.Spec.Locality.GroupGPUs != nil
	})
}

// unpaid compares the pods of Runs with the open Leases.
func (w *world) unpaid() (out []string) {
	balance := map[string]int{}
	for i := range w.pods {
		pod := &w.pods[i]
		if pod.Labels[rqv1.LabelRun] != "" && pod.Spec.NodeName != "" {
			balance[pod.Namespace+"/"+string(pod.UID)+" on "+pod.Spec.NodeName]++
		}
	}
	for i := range w.leases {
		if lease := &w.leases[i]; !lease.Status.Closed {
			balance[lease.Namespace+"/"+lease.Labels[rqv1.LabelPodUID]+" on "+lease.Node()]--
		}
	}
	for _, pod := range sortedKeys(balance) {
		if balance[pod] != 0 {
			out = append(out, fmt.Sprintf("pod %s: bound pods less open Leases are %d", pod, balance[pod]))
		}
	}
	return out
}

func (w *world) overfull() (out []string) {
	held := holders(w.nodes, w.leases)
	for i := range w.nodes {
		gpus := 0
		for _, n := range held[w.nodes[i].Name] {
			gpus += n
		}
		if gpus > gpusOf(&w.nodes[i]) {
			out = append(out, fmt.Sprintf("node %s holds %d of %d GPUs", w.nodes[i].Name, gpus, gpusOf(&w.nodes[i])))
		}
	}
	return out
}

// overspent compares what envelopes pay for with their caps.
func (w *world) overspent() (out []string) {
	paid := map[string]int32{}
	order, found := w.shares(false)
	for _, s := range order {
		paid[s.envelope] += found[s].gpus
	}
	for i := range w.budgets {
		for _, e := range w.budgets[i].Spec.Envelopes {
			if used := paid[w.budgets[i].Name+"/"+e.Name]; used > e.Concurrency {
				out = append(out, fmt.Sprintf("envelope %s/%s pays for %d of %d GPUs", w.budgets[i].Name, e.Name, used,
					e.Concurrency))
			}
		}
	}
	return out
}
