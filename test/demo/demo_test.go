package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
)

// fleet is nodes of 4 GPUs, given as DOMAIN-NODE, in an order that is not theirs.
func fleet(names ...string) []corev1.Node {
	nodes := make([]corev1.Node, len(names))
	for i, name := range names {
		domain, node, _ := strings.Cut(name, "-")
		nodes[i].Name = node
		nodes[i].Labels = map[string]string{"region": "west", "cluster": "one", "fabric.domain": domain}
		nodes[i].Status.Allocatable = corev1.ResourceList{gpuResource: resource.MustParse("4")}
	}
	return nodes
}

// lease is a Lease of team's Run, and the pod that it belongs to.
func lease(run string, group int32, node string, gpus int32, envelope string) (rqv1.Lease, corev1.Pod) {
	uid := fmt.Sprintf("%s-%d-%s", run, group, node)
	l := rqv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Labels: map[string]string{rqv1.LabelPodUID: uid}},
		Spec: rqv1.LeaseSpec{
			RunRef: rqv1.LeaseRunRef{Namespace: "team", Name: run}, GroupIndex: group,
			Slice: rqv1.LeaseSlice{Role: rqv1.RoleActive, Nodes: []rqv1.NodeGPUs{{Name: node, GPUs: gpus}}},
			Payer: rqv1.LeasePayer{Budget: "team", Owner: "org:team"}, PaidByEnvelope: envelope,
		},
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", UID: types.UID(uid),
		Labels: map[string]string{rqv1.LabelRun: run}}}
	pod.Spec.NodeName = node
	return l, pod
}

// sample is a world of two domains, two Runs that hold GPUs and one that waits.
func sample() *world {
	w := &world{nodes: fleet("B-b1", "A-a2", "A-a1")}
	for _, name := range []string{"train", "tune", "late"} {
		run := rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		run.Status.Phase = rqv1.RunRunning
		if name == "train" {
			groupGPUs := int32(4)
			run.Spec.Locality = &rqv1.RunLocality{GroupGPUs: &groupGPUs}
		}
		if name == "late" {
			run.Status.Phase = rqv1.RunPending
			run.Status.Conditions = []metav1.Condition{{Type: rqv1.ConditionStarted, Reason: "InsufficientGPUs"}}
		}
		w.runs = append(w.runs, run)
	}
	w.add(lease("train", 1, "b1", 4, "main"))
	w.add(lease("train", 0, "a2", 2, "main"))
	w.add(lease("train", 0, "a1", 2, "main"))
	w.add(lease("tune", 0, "a1", 1, "side"))
	gone, _ := lease("gone", 0, "a2", 4, "main")
	gone.Status.Closed = true
	w.leases = append(w.leases, gone)
	budget := rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	budget.Spec.Envelopes = []rqv1.Envelope{{Name: "main", Concurrency: 8}, {Name: "side", Concurrency: 1}}
	w.budgets = []rqv1.Budget{budget}
	return w
}

func (w *world) add(l rqv1.Lease, pod corev1.Pod) {
	w.leases, w.pods = append(w.leases, l), append(w.pods, pod)
}

func TestAccounts(t *testing.T) {
	w := sample()
	clitest.Golden(t, "payers", w.payers())
	var all strings.Builder
	for _, run := range []string{"team/train", "team/tune", "team/late", "team/gone"} {
		fmt.Fprintf(&all, "%s: %s\n", run, w.account(run))
	}
	clitest.Golden(t, "accounts", all.String())
}

func TestContradictions(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*world)
		want   []string
	}{
		{"none", func(*world) {}, nil},
		{"a pod without a Lease", func(w *world) { w.leases = w.leases[1:] },
			[]string{"pod team/train-1-b1 on b1: bound pods less open Leases are 1"}},
		{"a Lease without a pod", func(w *world) { w.pods = w.pods[1:] },
			[]string{"pod team/train-1-b1 on b1: bound pods less open Leases are -1"}},
		{"a full node", func(w *world) { w.leases[3].Spec.Slice.Nodes[0].GPUs = 3 },
			[]string{"node a1 holds 5 of 4 GPUs", "envelope team/side pays for 3 of 1 GPUs"}},
		{"a group in two domains", func(w *world) { w.nodes[1].Labels["fabric.domain"] = "B" },
			[]string{"group 0 of team/train lies in domains [A B]"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := sample()
			test.change(w)
			if diff := cmp.Diff(test.want, w.contradictions()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
