package integration

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// asks has a RayCluster ask for so many workers.
func (m *made) asks(workers int64) {
	m.t.Helper()
	edit(m.site, m.object, func(o *unstructured.Unstructured) {
		groups, _, err := unstructured.NestedSlice(o.Object, "spec", "workerGroupSpecs")
		if err != nil {
			m.t.Fatal(err)
		}
		groups[0].(map[string]any)["replicas"] = workers
		if err := unstructured.SetNestedSlice(o.Object, groups, "spec", "workerGroupSpecs"); err != nil {
			m.t.Fatal(err)
		}
	})
}

// scales has a RayCluster of two workers ask for a third, by which its Run grows, on loan, and then for one: the Run
// narrows, and the Leases of the others are closed.
func (m *made) scales(run string) {
	m.t.Helper()
	m.asks(3)
	m.pods, m.names = append(m.pods, m.pods[len(m.pods)-1]), append(m.names, "")
	if err := m.tend(); err != nil {
		m.t.Fatal(err)
	}
	is := m.await(run, rqv1.RunRunning, "grew to 24 GPUs")
	if is.Spec.Resources.TotalGPUs != 16 {
		m.t.Errorf("the Run asks for %d GPUs for itself", is.Spec.Resources.TotalGPUs)
	}
	m.paidBy(run, map[string]int32{string(m.owner) + "/all own Active": 24})
	m.settled()

	m.asks(2)
	m.without(run, "1")
	m.paid(run, 16)
	// Its ranks are 0 and 2. It asks for no more, so that none is lost.
	if is := m.await(run, rqv1.RunRunning, "bound 16 GPUs"); is.Status.Width.Desired != 16 {
		m.t.Errorf("its width is %+v", is.Status.Width)
	}
	m.asks(3)
	m.pods, m.names = append(m.pods, m.pods[len(m.pods)-1]), append(m.names, "")
	if err := m.tend(); err != nil {
		m.t.Fatal(err)
	}
	m.paid(run, 24)
	m.await(run, rqv1.RunRunning, "24 GPUs")
	m.settled()

	m.without(run, "1")
	m.paid(run, 16)
	m.asks(1)
	m.without(run, "2")
	eventually(m.t, "the Run is to be narrower", func() error {
		is, err := m.get(run)
		if paid := m.payers(run); err == nil && (is.Status.Width.Granted != 8 || len(paid) != 1 ||
			paid[string(m.owner)+"/all own Active"] != 8) {
			err = fmt.Errorf("it is granted %d GPUs, paid by %v: %s", is.Status.Width.Granted, paid, is.Status.Message)
		}
		return err
	})
	m.settled()
}

// paid waits until so many GPUs of a Run are paid for.
func (m *made) paid(run string, gpus int32) {
	m.t.Helper()
	eventually(m.t, fmt.Sprintf("%d GPUs of %s", gpus, run), func() error {
		if paid := m.payers(run); paid[string(m.owner)+"/all own Active"] != gpus {
			return fmt.Errorf("it is paid by %v", paid)
		}
		return nil
	})
}

// without has the pod of a rank go, which nobody makes anew.
func (m *made) without(run, rank string) {
	m.t.Helper()
	for name, pod := range m.podsOf(run) {
		if pod.Labels[rqv1.LabelIndex] == rank {
			i := slices.Index(m.names, name)
			m.pods, m.names = slices.Delete(m.pods, i, i+1), slices.Delete(m.names, i, i+1)
			m.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: name}})
		}
	}
}

// completes has an MPIJob succeed, whose operator deletes the workers then: they would run for good. Its Run is
// complete although none of its pods has ended.
func (m *made) completes(run string) {
	m.t.Helper()
	edit(m.site, m.object, func(o *unstructured.Unstructured) {
		done := map[string]any{"type": "Succeeded", "status": "True", "reason": "MPIJobSucceeded"}
		if err := unstructured.SetNestedSlice(o.Object, []any{done}, "status", "conditions"); err != nil {
			m.t.Fatal(err)
		}
	})
	for _, name := range m.names {
		m.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: name}})
	}
	m.await(run, rqv1.RunCompleted, "")
	eventually(m.t, "it is to hold nothing", func() error {
		if open := m.payers(run); len(open) != 0 {
			return fmt.Errorf("it is complete, and holds %v", open)
		}
		return nil
	})
}

// asksForGroups has a LeaderWorkerSet ask for so many groups.
func (m *made) asksForGroups(replicas int64) {
	m.t.Helper()
	edit(m.site, m.object, func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, replicas, "spec", "replicas"); err != nil {
			m.t.Fatal(err)
		}
	})
}

// hasGroups has a LeaderWorkerSet of one group ask for a second, which is a gang of its own and waits as one until
// there is room, and then for one: what the second held is free, and the first is left alone.
func (m *made) hasGroups(run string) {
	m.t.Helper()
	const words = "leaderworkerset.sigs.k8s.io/"
	stays, second := m.uids(run), m.groupRun("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "serve-1")
	names := []string{"serve-1", "serve-1-1"}
	m.asksForGroups(2)
	for worker, name := range names {
		pod := m.saying(name, 8, words+"name!", "serve", words+"group-index!", "1", words+"worker-index!",
			strconv.Itoa(worker), words+"size", "2")
		// The StatefulSet of the first group's leader would take one for its own that is nobody's, and delete it.
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(m.object, m.object.GroupVersionKind())}
		m.create(pod)
	}
	m.await(second, rqv1.RunPending, "short by 8")
	if err := m.holdsNothing(second); err != nil {
		m.t.Error(err)
	}
	m.addNodes("d1", 1)
	m.await(second, rqv1.RunRunning, "bound 16 GPUs")
	m.paidBy(second, map[string]int32{string(m.owner) + "/all own Active": 16})
	m.settled()

	m.asksForGroups(1)
	for _, name := range names {
		m.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: name}})
	}
	eventually(m.t, "the second group is to hold nothing", func() error {
		if paid := m.payers(second); len(paid) > 0 {
			return fmt.Errorf("it is paid by %v", paid)
		}
		return nil
	})
	if diff := cmp.Diff(stays, m.uids(run)); diff != "" {
		m.t.Errorf("pods of the first group (-before +after):\n%s", diff)
	}
	m.awaitGone(second)
	m.paid(run, 16)
	m.settled()
}
