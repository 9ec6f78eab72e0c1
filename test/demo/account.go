package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// world is what the API server holds at one time. Its Leases are open and closed ones.
type world struct {
	nodes   []corev1.Node
	pods    []corev1.Pod
	runs    []rqv1.Run
	leases  []rqv1.Lease
	budgets []rqv1.Budget
	// reservations are of Runs that wait, and of those that have started.
	reservations []rqv1.Reservation
}

// share is the part of a Run's group that one envelope pays for.
type share struct {
	run      string
	group    int32
	envelope string
	owner    rqv1.Owner
}

// holding is the nodes, in order of name, and the GPUs of a share.
type holding struct {
	nodes []string
	gpus  int32
}

// shares adds up open Leases, or closed ones.
func (w *world) shares(closed bool) ([]share, map[share]*holding) {
	var order []share
	found := map[share]*holding{}
	for i := range w.leases {
		lease := &w.leases[i]
		if lease.Status.Closed != closed {
			continue
		}
		key := share{runOf(lease), lease.Spec.GroupIndex, lease.Spec.Payer.Budget + "/" + lease.Spec.PaidByEnvelope,
			lease.Spec.Payer.Owner}
		if found[key] == nil {
			found[key] = &holding{}
			order = append(order, key)
		}
		for _, slice := range lease.Spec.Slice.Nodes {
			found[key].gpus += slice.GPUs
			found[key].nodes = append(found[key].nodes, slice.Name)
		}
	}
	for _, h := range found {
		slices.Sort(h.nodes)
		h.nodes = slices.Compact(h.nodes)
	}
	slices.SortFunc(order, func(a, b share) int {
		return strings.Compare(fmt.Sprintf("%s %08d %s", a.run, a.group, a.envelope),
			fmt.Sprintf("%s %08d %s", b.run, b.group, b.envelope))
	})
	return order, found
}

// account says in lines what a Run is and has: its phase, and of each group its nodes, their domains and who pays.
func (w *world) account(name string) string {
	var lines []string
	for i := range w.runs {
		run := &w.runs[i]
		if run.Namespace+"/"+run.Name != name {
			continue
		}
		line := string(run.Status.Phase)
		if started := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionStarted); started != nil {
			line += ", " + started.Reason
		}
		lines = append(lines, line)
	}
	order, found := w.shares(false)
	for _, s := range order {
		if s.run == name {
			h := found[s]
			lines = append(lines, fmt.Sprintf("group %d: %d GPUs in domain %s on %s, paid by %s",
				s.group, h.gpus, strings.Join(w.domains(h.nodes), "+"), strings.Join(h.nodes, " "), s.envelope))
		}
	}
	return strings.Join(lines, "\n")
}

// domains names the domains of nodes, sorted.
func (w *world) domains(names []string) []string {
	found := map[string]bool{}
	for i := range w.nodes {
		if slices.Contains(names, w.nodes[i].Name) {
			found[domain(&w.nodes[i])] = true
		}
	}
	return sortedKeys(found)
}

// payers is a table of who pays for what is held now.
func (w *world) payers() string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "  RUN\tGROUP\tDOMAIN\tGPUS\tPAID BY\tOF OWNER")
	order, found := w.shares(false)
	for _, s := range order {
		h := found[s]
		fmt.Fprintf(table, "  %s\t%d\t%s\t%d\t%s\t%s\n", s.run, s.group, strings.Join(w.domains(h.nodes), "+"), h.gpus,
			s.envelope, s.owner)
	}
	_ = table.Flush() // a strings.Builder takes everything
	return out.String()
}
