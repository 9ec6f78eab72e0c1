package integration

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// incomplete finds Runs that hold neither nothing nor all: a Running one holds all that it was granted (I7), and one
// that waits, has ended or is gone holds nothing (I5, I9).
func (w *world) incomplete() []string {
	open, active := map[string]int32{}, map[string]int32{} // GPUs in open Leases, with and without spares
	bound, running := map[string]int32{}, map[string]int32{}
	for _, lease := range w.leases {
		if lease.Status.Closed {
			continue
		}
		open[lease.Spec.RunRef.Name] += lease.Spec.Slice.Nodes[0].GPUs
		if lease.Spec.Slice.Role != rqv1.RoleSpare {
			active[lease.Spec.RunRef.Name] += lease.Spec.Slice.Nodes[0].GPUs
		}
	}
	for _, pod := range w.pods {
		run := pod.Labels[rqv1.LabelRun]
		if run == "" || pod.Spec.NodeName == "" {
			continue
		}
		if !ended(&pod) {
			bound[run] += int32(gpus(&pod))
		}
		if !ended(&pod) || pod.Status.Phase == corev1.PodSucceeded {
			running[run] += int32(gpus(&pod))
		}
	}
	var out []string
	for name, run := range w.runs {
		total, most := widthOf(&run)
		switch {
		case run.DeletionTimestamp != nil:
			if open[name] > 0 || bound[name] > 0 {
				out = append(out, fmt.Sprintf("I5: Run %s is being deleted with %d GPUs in pods and %d in open Leases", name,
					bound[name], open[name]))
			}
		case run.Status.Phase == rqv1.RunRunning && (running[name] < total || running[name] > most):
			out = append(out, fmt.Sprintf("I7: Run %s is Running with %d of %d GPUs", name, running[name], total))
		case run.Status.Phase == rqv1.RunRunning && active[name] != bound[name]:
			out = append(out, fmt.Sprintf("I2: Run %s has %d GPUs in pods and %d in open Leases", name, bound[name],
				active[name]))
		case run.Status.Phase == rqv1.RunRunning:
		case run.Status.Phase == "" || run.Status.Phase == rqv1.RunPending:
			if open[name] > 0 || bound[name] > 0 {
				out = append(out, fmt.Sprintf("I9: Run %s waits with %d GPUs in pods and %d in open Leases", name, bound[name],
					open[name]))
			}
		case open[name] > 0 || bound[name] > 0:
			out = append(out, fmt.Sprintf("I5: Run %s is %s with %d GPUs in pods and %d in open Leases", name, run.Status.Phase,
				bound[name], open[name]))
		}
	}
	for name := range open {
		if _, there := w.runs[name]; !there {
			out = append(out, fmt.Sprintf("I5: Run %s is gone with %d GPUs in open Leases", name, open[name]))
		}
	}
	return out
}

// widthOf is the width that a Run was granted, and the one that it has when the cohort that it grows by is there; its
// total before that.
func widthOf(run *rqv1.Run) (least, most int32) {
	if w := run.Status.Width; run.Spec.Opportunistic && w != nil {
		return 1, w.Max
	}
	if w := run.Status.Width; w != nil && w.Granted > 0 {
		return w.Granted, max(w.Granted, w.Growing)
	}
	return run.Spec.Resources.TotalGPUs, run.Spec.Resources.TotalGPUs
}

// ended tells whether a pod holds nothing any more.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// gpus is the number of GPUs that a pod asks for.
func gpus(pod *corev1.Pod) int64 {
	total := int64(0)
	for i := range pod.Spec.Containers {
		total += int64(counted.Sum(pod.Spec.Containers[i].Resources.Limits))
	}
	return total
}

// placesOf names Leases and where they are.
func placesOf(leases []rqv1.Lease) []string {
	var out []string
	for _, lease := range leases {
		out = append(out, fmt.Sprintf("%s of %d on %s", lease.Name, lease.Spec.Slice.Nodes[0].GPUs, lease.Node()))
	}
	return out
}
