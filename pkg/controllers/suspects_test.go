package controllers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/suspicion"
)

// suspecting is what marks nodes, of which some have GPUs.
func suspecting(t *testing.T, withGPUs, without int) *suspects {
	t.Helper()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []runtime.Object
	for i := range withGPUs + without {
		node := nodeOf8(nameOf(i))
		if i >= withGPUs {
			node.Status = corev1.NodeStatus{}
		}
		nodes = append(nodes, node)
	}
	s := newSuspects(&Options{Kube: fake.NewClientset(nodes...), Args: args, events: events.NewFakeRecorder(1000),
		Clock: clocktesting.NewFakeClock(noon)}, cache.NewSharedIndexInformer(nil, nil, 0, nil),
		cache.NewSharedIndexInformer(nil, nil, 0, nil))
	s.refresh(t)
	return s
}

// refresh has the cache of nodes hold what the API server does.
func (s *suspects) refresh(t *testing.T) (marked int) {
	t.Helper()
	list, err := s.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if suspicion.Of(&list.Items[i]).Until().After(noon) {
			marked++
		}
		if err := s.nodes.GetStore().Add(&list.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
	return marked
}

// says has a Run be looked at, a rank of which has ended on a node.
func (s *suspects) says(t *testing.T, owner rqv1.Owner, index int, d rqv1.RunDeath) {
	t.Helper()
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint(owner, index),
		UID: types.UID(fmt.Sprint(owner, index))}, Spec: rqv1.RunSpec{Owner: owner}}
	d.Node, d.At = nameOf(index), metav1.NewTime(noon)
	run.Status.Phase, run.Status.Deaths = rqv1.RunFailed, []rqv1.RunDeath{d}
	if err := s.runs.GetStore().Add(run); err != nil {
		t.Fatal(err)
	}
	s.note(run)
	s.look(t.Context(), types.NamespacedName{Namespace: "ns", Name: run.Name})
	s.refresh(t)
}

// TestOneOwnersWordIsBoundedByNodesWithGPUs, however many nodes without there are.
func TestOneOwnersWordIsBoundedByNodesWithGPUs(t *testing.T) {
	s := suspecting(t, 20, 180)
	for i := range 20 {
		s.says(t, "a", i, rqv1.RunDeath{Pod: "p", Cause: rqv1.CauseNode, Sign: "UnexpectedAdmissionError"})
	}
	if got, most := s.refresh(t), s.args.NodesAtOnce(20); got != most {
		t.Errorf("%d of 20 nodes with GPUs are suspect by one owner's word, want %d", got, most)
	}
}

// TestTwoOwnersWordIsBounded: what befalls many owners' programs at once, such as a file server or a registry that is
// away, is not the fault of all the nodes.
func TestTwoOwnersWordIsBounded(t *testing.T) {
	s := suspecting(t, 40, 0)
	for i := range 40 {
		s.says(t, "a", i, rqv1.RunDeath{Pod: "p", Cause: rqv1.CauseProgram, Sign: "Error", ExitCode: 1})
		s.says(t, "b", i, rqv1.RunDeath{Pod: "p", Cause: rqv1.CauseProgram, Sign: "Error", ExitCode: 1})
	}
	if got, most := s.refresh(t), s.args.NodesAtOnce(40); got != most {
		t.Errorf("%d of 40 nodes are suspect at once, want %d: no Run gets a spare again anywhere for a day", got, most)
	}
	told := map[string]int{}
	for recorded := s.events.(*events.FakeRecorder).Events; len(recorded) > 0; {
		told[strings.Fields(<-recorded)[1]]++
	}
	if diff := cmp.Diff(map[string]int{"Suspect": 4, "NotSuspected": 1}, told); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestOneLookIsBounded, of a Run that tells of many nodes, although the cache has not seen what was written.
func TestOneLookIsBounded(t *testing.T) {
	s := suspecting(t, 40, 0)
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train"}, Spec: rqv1.RunSpec{Owner: "a"}}
	for i := range rqv1.MostDeaths {
		run.Status.Deaths = append(run.Status.Deaths, rqv1.RunDeath{Node: nameOf(i), At: metav1.NewTime(noon),
			Cause: rqv1.CauseNode, Sign: "UnexpectedAdmissionError"})
	}
	if err := s.runs.GetStore().Add(run); err != nil {
		t.Fatal(err)
	}
	s.look(t.Context(), types.NamespacedName{Namespace: "ns", Name: "train"})
	if got, most := s.refresh(t), s.args.NodesAtOnce(40); got != most {
		t.Errorf("%d of 40 nodes are suspect by what one Run tells, want %d", got, most)
	}
}
