package book_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// asksOf has a container of a pod ask for so much of a resource.
func asksOf(c *corev1.Container, name string, n int64) {
	limits := corev1.ResourceList{}
	for key, quantity := range c.Resources.Limits {
		limits[key] = quantity
	}
	limits[corev1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
	c.Resources.Limits = limits
}

// A pod asks for other GPUs, as it was admitted, than its Run pays for: no Lease is written that says less than the pod
// gets, the Run holds nothing and is told, and it starts once admission leaves its pods alone.
func TestPodsAdmittedWithOtherGPUsThanAreChargedAreRefused(t *testing.T) {
	more := corev1.Container{Name: "more", Image: "proxy"}
	for name, admits := range map[string]func(pod *corev1.Pod){
		"a sidecar with GPUs": func(pod *corev1.Pod) {
			asksOf(&more, "nvidia.com/gpu", 4)
			pod.Spec.Containers = append(pod.Spec.Containers, more)
		},
		"an init container with more": func(pod *corev1.Pod) {
			asksOf(&more, "nvidia.com/gpu", 6)
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, more)
		},
		"more GPUs": func(pod *corev1.Pod) { asksOf(&pod.Spec.Containers[0], "nvidia.com/gpu", 8) },
		"none":      func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{} },
	} {
		for _, of := range []string{"run0-0", "run0-1", "run0-s0"} {
			if name == "none" && of == "run0-s0" {
				continue // it has none
			}
			t.Run(name+" in "+of, func(t *testing.T) {
				tell(t, func(w *world) {
					w.Admits = func(pod *corev1.Pod) {
						if pod.Name == of {
							admits(pod)
						}
					}
					for _, node := range []string{"n0", "n1", "n2"} {
						w.addNode(node, "d0")
					}
					w.setBudget("a", "org:a", 64)
					w.submitWithSpares("run0", "org:a", 1, 2, 4, 1)
					for range 10 {
						w.round()
						for _, pod := range w.Pods {
							if pod.Name == of && pod.Spec.NodeName != "" {
								w.t.Fatalf("%s is bound with other GPUs than are paid for: %s", of, w.describe("run0"))
							}
						}
					}
					if of != "run0-s0" {
						if run := w.Runs["run0"]; run.Status.Phase == rqv1.RunRunning ||
							!strings.Contains(run.Status.Message, "pod "+of+" was admitted") {
							w.t.Fatalf("phase %s, message %q", run.Status.Phase, run.Status.Message)
						}
						w.Admits = nil
						w.settle()
						w.running("run0", "although its pods are admitted as they are by now")
					}
				})
			})
		}
	}
}

// A rank that is replaced is admitted with more than was paid for: the Run goes on without it and says why, and nothing
// is bound.
func TestAReplacementAdmittedWithMoreGPUsIsTold(t *testing.T) {
	for _, spares := range []int{0, 1} {
		tell(t, func(w *world) {
			for _, node := range []string{"n0", "n1", "n2"} {
				w.addNode(node, "d0")
			}
			w.setBudget("a", "org:a", 64)
			w.submitWithSpares("run0", "org:a", 1, 2, 4, spares)
			w.settle()
			w.running("run0", "")
			w.Admits = func(pod *corev1.Pod) { asksOf(&pod.Spec.Containers[0], "nvidia.com/gpu", 8) }
			w.Lose(w.on("run0-0"))
			for range 10 {
				w.round()
				w.Pass(time.Second)
			}
			run := w.Runs["run0"]
			for _, pod := range w.Pods {
				if pod.Spec.NodeName != "" && pod.Spec.Containers[0].Resources.Limits.Name("nvidia.com/gpu", "").Value() == 8 {
					w.t.Fatalf("%s is bound: %s", pod.Name, w.describe("run0"))
				}
			}
			if told := run.Status.Message; !strings.Contains(told, "was admitted") {
				w.t.Fatalf("it says %q: %s", told, w.describe("run0"))
			}
		})
	}
}

// One pod of a gang, which is not its first, asks for a slice of a GPU beside its GPUs, or is admitted so: its Run is
// told so, and nobody is cut for it, whether all pods are there from the beginning or are made when it is decided who
// goes.
func TestNobodyIsCutForAPodThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ theirs, slice bool }{
		"a group of others": {theirs: true}, "one with a slice": {theirs: true, slice: true},
		"a Run": {}, "one that is admitted with a slice": {slice: true},
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.addNode("n0", "d0")
				s.addNode("n1", "d0")
				s.setBudget("a", "org:a", 64)
				s.submitWithSpares("run0", "org:a", 1, 2, 8, 0)
				s.work()
				s.during(time.Second)
				slice := func(pod *corev1.Pod) {
					_, slot, made := sim.MadeFor(pod)
					if c.slice && (made && slot == 1 || pod.Name == "run01-1") {
						asksOf(&pod.Spec.Containers[0], "nvidia.com/mig-1g.10gb", 1)
					}
				}
				s.Admits = slice
				if c.theirs {
					s.submitWithSpares("run01", "org:a", 1, 2, 8, 0, ungrouped, theirs)
					s.controlled(s.Runs["run01"], 2)
				} else {
					s.submit("run01", "org:a", 1, 2, 8)
				}
				for _, pod := range s.Pods {
					slice(pod)
				}
				for range 4 {
					s.work()
					s.during(3 * time.Minute)
					s.work()
				}
				if phase := s.Runs["run0"].Status.Phase; (phase == rqv1.RunRunning) != c.slice {
					s.t.Fatalf("run0 is %s\n%s", phase, s.story())
				}
				if told := s.Runs["run01"].Status.Message; c.slice && !strings.Contains(told, "mig-1g.10gb") {
					s.t.Fatalf("it says %q", told)
				}
			})
		})
	}
}

// A group runs whose pods ask for what nobody counts, as one does that has been started before that was looked at: what
// is made in the place of a lost pod is what the others are, and runs.
func TestAReplacementInAGroupThatRunsIsLetIn(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 3)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run00", "org:a", 1, 2, 8, 0, ungrouped, theirs)
		w.rounds(3)
		w.running("run00", "although its pods are there")
		w.leaves("run00", 1)
		w.rounds(1)
		w.makes("run00", 1)
		w.controlled(w.Runs["run00"], 1)
		for uid := range w.Pods {
			asksOf(&w.Pods[uid].Spec.Containers[0], "nvidia.com/gpumem", 1000)
		}
		w.rounds(5)
		if on := w.boundSlots("run00"); len(on) != 2 {
			w.t.Fatalf("its pods are on %v: %s", on, w.describe("run00"))
		}
	})
}

// What is said of GPUs holds for every resource that is counted, whatever it is called: other numbers than are paid
// for, and another of the resources beside the one that is paid for.
func TestWhatIsPaidForIsEveryResourceThatIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		asks string
		most int64
		says string
	}{
		"more of it":        {google, 8, "a request for 8 GPUs, and the Run pays for 4 a pod"},
		"none of it":        {google, 0, "a request for 0 GPUs, and the Run pays for 4 a pod"},
		"another beside it": {nvidia, 1, "request nvidia.com/gpu"},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				counting(w)
				w.offering("t0", "d0", chips, tpuNode(8))
				w.offering("g0", "d0", flavor, gpuNode(8))
				w.payForChips("org:a", 64)
				w.Admits = func(pod *corev1.Pod) {
					if strings.HasPrefix(pod.Name, "run00") {
						asksOf(&pod.Spec.Containers[0], c.asks, c.most)
					}
				}
				w.submitWithSpares("run00", "org:a", 1, 2, 4, 0, ungrouped, func(s *rqv1.RunSpec) {
					s.Resources.GPUType = chips
				})
				for range 8 {
					w.round()
				}
				for _, pod := range w.Pods {
					if pod.Spec.NodeName != "" && strings.HasPrefix(pod.Name, "run00") {
						w.t.Fatalf("%s is bound: %s", pod.Name, w.describe("run00"))
					}
				}
				if told := w.Runs["run00"].Status.Message; !strings.Contains(told, c.says) {
					w.t.Fatalf("it says %q, and holds %d", told, w.heldGPUs())
				}
				for _, lease := range w.Leases {
					if !lease.Status.Closed {
						w.t.Fatalf("Lease %s is open", lease.Name)
					}
				}
			})
		})
	}
}
