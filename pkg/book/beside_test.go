package book_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// askingFor has a Run's pods ask for CPU and memory.
func askingFor(cpu, memory string) func(*rqv1.RunSpec) {
	return func(s *rqv1.RunSpec) {
		s.Template = &corev1.PodTemplateSpec{Spec: asking(map[corev1.ResourceName]string{"cpu": cpu, "memory": memory},
			nil).Spec}
		s.Template.Spec.Containers[0].Name = "main"
	}
}

// withheld tells why a pod may not go to a node of which so many CPUs are free, and plenty of all else.
func (w *world) withheld(pod *corev1.Pod, node string, cpus int64) string {
	return w.Book.Withheld(pod, node, func(name corev1.ResourceName) int64 {
		if name == corev1.ResourceCPU {
			return cpus * 1000
		}
		return 1 << 40
	})
}

func cpuPod(name, cpu string) *corev1.Pod {
	pod := asking(map[corev1.ResourceName]string{"cpu": cpu}, nil)
	pod.Name, pod.UID = name, "cpu-pod"
	return pod
}

func TestASparesCPUIsHeld(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(3, 1, 1, askingFor("6", "1Gi"))
		rank, spare := w.on("run0-0"), w.on("run0-s0")
		shard := cpuPod("shard", "3")
		shard.Labels = map[string]string{rqv1.LabelRun: "other", rqv1.LabelRole: string(rqv1.RoleBorrowed)}
		for round := range 2 {
			if why := w.withheld(cpuPod("a", "3"), spare, 8); why != "cpu is held by spares of Run ns/run0 for their ranks: "+
				"3 requested, 6 held, 8 free" {
				w.t.Fatalf("round %d: %q", round, why)
			}
			for what, why := range map[string]string{
				"what is left":            w.withheld(cpuPod("a", "2"), spare, 8),
				"the rank's node":         w.withheld(cpuPod("a", "8"), rank, 8),
				"no CPU":                  w.withheld(asking(map[corev1.ResourceName]string{"memory": "1Gi"}, nil), spare, 0),
				"a shard":                 w.withheld(shard, spare, 3),
				"the spare, at its place": w.withheld(w.Pods[w.pod("run0-s0")], spare, 6),
			} {
				if why != "" {
					w.t.Fatalf("round %d: %s is refused: %s", round, what, why)
				}
			}
			if why := w.withheld(w.Pods[w.pod("run0-s0")], spare, 5); why == "" {
				w.t.Fatalf("the spare has its place although its rank could not run there")
			}
			w.crash()
			w.settle()
		}
	})
}

// The rank that takes the spare's place may use what was held, and then nothing is held any more.
func TestARankTakesOverItsSparesCPU(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(2, 1, 1, askingFor("6", "1Gi"))
		spare := w.on("run0-s0")
		w.Lose(w.on("run0-0"))
		for range 5 { // until the spare is gone, and its Lease closed
			w.reconcile("run0")
		}
		if w.withheld(cpuPod("a", "3"), spare, 8) == "" {
			w.t.Fatalf("the CPU is free before the rank has it")
		}
		uid := w.pod("run0-0")
		if node, refusal := w.Book.Place(uid, w.Now); node != spare {
			w.t.Fatalf("the rank goes to %q: %v", node, refusal)
		}
		if why := w.withheld(w.Pods[uid], spare, 6); why != "" {
			w.t.Fatalf("the rank may not have its spare's CPU: %s", why)
		}
		if w.withheld(cpuPod("a", "3"), spare, 8) == "" {
			w.t.Fatalf("the CPU is free before the rank is counted")
		}
		w.Book.TakeActions()
		if err := w.Book.Reserve(uid, spare); err != nil {
			w.t.Fatal(err)
		}
		if why := w.withheld(cpuPod("a", "8"), spare, 8); why != "" {
			w.t.Fatalf("the CPU is counted twice: %s", why)
		}
		woken := false
		for _, pod := range w.Book.TakeActions().Activate {
			woken = woken || pod.UID == "cpu-pod"
		}
		if !woken {
			w.t.Fatalf("the pod that was kept from the node is not tried again")
		}
	})
}

// With its Run a spare gives everything back.
func TestADeletedRunHoldsNoCPU(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(2, 1, 1, askingFor("6", "1Gi"))
		spare := w.on("run0-s0")
		w.DeleteRun("run0")
		w.settle()
		if why := w.withheld(cpuPod("a", "8"), spare, 8); why != "" || w.Book.HoldsBeside() {
			w.t.Fatalf("the CPU is held: %s", strings.TrimSpace(why))
		}
	})
}
