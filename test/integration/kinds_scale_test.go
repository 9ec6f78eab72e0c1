package integration

import (
	"fmt"
	"slices"

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
	// Its ranks are 0 and 2. Once the place of the one between is not kept any more it says that nothing replaces it.
	m.await(run, rqv1.RunRunning, "runs with 2 of 3 pods")
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
	if open := m.payers(run); len(open) != 0 {
		m.t.Errorf("it is complete, and holds %v", open)
	}
}
