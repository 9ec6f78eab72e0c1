package book_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

const (
	nvidia = "nvidia.com/gpu"
	google = "google.com/tpu"
	chips  = "tpu-v5e" // a GPU type whose nodes have TPUs
)

// counting has a world count both resources.
func counting(w *world) {
	w.Args.GPUResource = config.Resources{nvidia, google}
	w.crash()
}

// offering is a node of a type that has so many of each of some resources.
func (w *world) offering(name, domain, of string, has map[corev1.ResourceName]int64) {
	w.addNode(name, domain)
	node := w.Nodes[name].DeepCopy()
	node.Labels["gpu.flavor"], node.Status.Capacity = of, nil
	node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi")}
	for name, n := range has {
		node.Status.Allocatable[name] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	w.SetNode(node)
}

func gpuNode(n int64) map[corev1.ResourceName]int64 { return map[corev1.ResourceName]int64{nvidia: n} }
func tpuNode(n int64) map[corev1.ResourceName]int64 { return map[corev1.ResourceName]int64{google: n} }

// payForChips gives an owner a Budget for TPUs.
func (w *world) payForChips(owner rqv1.Owner, n int) {
	w.setBudget("chips", owner, n)
	w.edit("chips", func(e *rqv1.Envelope) { e.Flavor = chips })
}

// onChips has a Run ask for TPUs, and its pods for as many as its nodes have.
func onChips(s *rqv1.RunSpec) {
	s.Resources.GPUType, s.Resources.GPUsPerPod, s.SparesPerGroup = chips, nil, nil
}

// requests returns what the pods of a Run ask for of the resources that are counted, each on its node.
func (w *world) requests(run string) (out []string) {
	for _, uid := range w.podsOf(run) {
		pod := w.Pods[uid]
		text := pod.Spec.NodeName + ":"
		limits := pod.Spec.Containers[0].Resources.Limits
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			quantity := limits[name]
			text += " " + quantity.String() + " " + string(name)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

func (w *world) requesting(run string, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.requests(run)); diff != "" {
		w.t.Fatalf("pods of %s (-want +got):\n%s\n%s", run, diff, w.Runs[run].Status.Message)
	}
}

// leftOut asserts which nodes are left out, and words of why, beside the one that every cluster has.
func (w *world) leftOut(want map[string]string) {
	w.t.Helper()
	got := slices.DeleteFunc(w.Book.LeftOutNodes(), func(n topology.LeftOut) bool { return n.Node == "other-0" })
	for _, out := range got {
		if why, ok := want[out.Node]; !ok || !strings.Contains(out.Reason, why) {
			w.t.Fatalf("%s is left out: %s", out.Node, out.Reason)
		}
	}
	if len(got) != len(want) {
		w.t.Fatalf("%d nodes are left out: %v", len(got), got)
	}
}

// Pods request the resource that the nodes of their type have, are placed there and counted there, also for a process
// that begins anew; a Run for one type has nothing of the other.
func TestPodsRequestTheResourceOfTheirType(t *testing.T) {
	tell(t, func(w *world) {
		counting(w)
		w.offering("g0", "d0", flavor, gpuNode(8))
		w.offering("t0", "d1", chips, tpuNode(4))
		w.offering("t1", "d1", chips, tpuNode(4))
		w.setBudget("a", "org:a", 8)
		w.payForChips("org:a", 64)
		w.submitWithSpares("gpus", "org:a", 1, 1, 8, 0)
		w.submitWithSpares("tpus", "org:a", 1, 2, 4, 0, onChips)
		w.submitWithSpares("waits", "org:a", 1, 2, 4, 0, onChips)
		w.settle()
		check := func() {
			w.t.Helper()
			w.requesting("gpus", "g0: 8 nvidia.com/gpu")
			w.requesting("tpus", "t0: 4 google.com/tpu", "t1: 4 google.com/tpu")
			w.requesting("waits", ": 4 google.com/tpu") // its leader
			for node, most := range map[string]int64{"g0": 10, "t0": 10} {
				if full := w.Book.Fullness(node, most); full != most {
					w.t.Fatalf("%s is full to %d of %d", node, full, most)
				}
			}
		}
		check()
		w.crash()
		w.settle()
		check()
		w.leftOut(nil)
	})
}

// A node that has two of the resources, or none, is left out and stops nobody else.
func TestANodeHasOneResource(t *testing.T) {
	tell(t, func(w *world) {
		counting(w)
		both := map[corev1.ResourceName]int64{nvidia: 8, google: 4}
		w.offering("both", "d1", chips, both)
		w.offering("neither", "d1", chips, nil)
		w.offering("t0", "d1", chips, tpuNode(4))
		w.payForChips("org:a", 64)
		w.submitWithSpares("tpus", "org:a", 1, 2, 4, 0, onChips)
		w.settle()
		w.refusedWith("tpus", plan.NeverFits)
		w.leftOut(map[string]string{
			"both":    "it offers nvidia.com/gpu and google.com/tpu, but jobtree counts one resource on a node",
			"neither": "no GPU is allocatable"})
		w.offering("both", "d1", chips, tpuNode(4))
		w.settle()
		w.requesting("tpus", "both: 4 google.com/tpu", "t0: 4 google.com/tpu")
		w.leftOut(map[string]string{"neither": "no GPU is allocatable"})
	})
}

// Most of a flavor's nodes say what its resource is, and where that is undecided the order in the configuration does,
// whichever came first. Others are left out.
func TestAFlavorHasOneResource(t *testing.T) {
	for name, test := range map[string]struct {
		has     string // the resource of each node
		leftOut map[string]string
	}{
		"one of two others": {"gtt",
			map[string]string{"n0": `it offers nvidia.com/gpu, but other nodes of GPU type "tpu-v5e" ` +
				`offer google.com/tpu: correct label "gpu.flavor"`}},
		"as many":  {"tgtg", map[string]string{"n0": "it offers google.com/tpu", "n2": "it offers google.com/tpu"}},
		"all":      {"ttt", nil},
		"all less": {"tt-", map[string]string{"n2": "no GPU is allocatable"}},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				counting(w)
				var adds []func()
				for i, has := range test.has {
					offers := map[rune]map[corev1.ResourceName]int64{'g': gpuNode(8), 't': tpuNode(4)}[has]
					adds = append(adds, func() { w.offering("n"+string(rune('0'+i)), "d0", chips, offers) })
				}
				for _, add := range w.shuffle(adds) {
					add()
				}
				w.leftOut(test.leftOut)
				w.crash()
				w.leftOut(test.leftOut)
				w.RemoveNode("n0")
				if test.has == "gtt" {
					w.leftOut(nil)
				}
			})
		})
	}
}

// A Run whose template asks for another resource than its type's nodes have is told which field to mend, and has no
// pod.
func TestATemplateThatAsksForAnotherResource(t *testing.T) {
	asksFor := func(of ...corev1.ResourceName) func(*rqv1.RunSpec) {
		return func(s *rqv1.RunSpec) {
			onChips(s)
			limits := map[corev1.ResourceName]string{}
			for _, name := range of {
				limits[name] = "4"
			}
			s.Template = &corev1.PodTemplateSpec{Spec: asking(limits, nil).Spec}
			s.Template.Spec.Containers[0].Name = "train"
		}
	}
	tell(t, func(w *world) {
		counting(w)
		w.offering("t0", "d1", chips, tpuNode(4))
		w.payForChips("org:a", 64)
		w.submitWithSpares("right", "org:a", 1, 1, 4, 0, asksFor(google))
		w.submitWithSpares("wrong", "org:a", 1, 1, 4, 0, asksFor(nvidia))
		w.submitWithSpares("both", "org:a", 1, 1, 4, 0, asksFor(nvidia, google))
		w.submitWithSpares("slices", "org:a", 1, 1, 4, 0, asksFor("nvidia.com/mig-1g.10gb", google)) // which nobody counts
		w.settle()
		w.requesting("right", "t0: 4 google.com/tpu")
		for run, asks := range map[string]string{"wrong": nvidia, "both": nvidia, "slices": "4 nvidia.com/mig-1g.10gb"} {
			w.refusedWith(run, plan.WrongResource)
			want := "spec.template requests " + asks + ", but nodes of type tpu-v5e offer google.com/tpu: request " +
				"that in spec.template.spec.containers[].resources.limits, leave it out, or correct spec.resources.gpuType"
			if got := w.Book.Refusal(w.Runs[run].UID).Message; got != want {
				w.t.Fatalf("%s is told %q", run, got)
			}
			if out := w.Book.WhatIf(w.Runs[run].DeepCopy(), w.Now); out.Refusal == nil ||
				out.Refusal.Reason != plan.WrongResource {
				w.t.Fatalf("what would become of %s: %+v", run, out)
			}
		}
	})
}

// From a Run's first pod on the resource stands: a rank that is lost is replaced by a pod that requests the same,
// whatever the type's nodes have become meanwhile. A Run that waits is told how to have its pods made anew.
func TestTheResourceStandsFromTheFirstPodOn(t *testing.T) {
	tell(t, func(w *world) {
		counting(w)
		w.offering("t0", "d1", chips, tpuNode(4))
		w.offering("t1", "d1", chips, tpuNode(4))
		w.payForChips("org:a", 64)
		w.submitWithSpares("tpus", "org:a", 1, 2, 4, 0, onChips)
		w.submitWithSpares("waits", "org:a", 1, 2, 4, 0, onChips)
		w.settle()
		for _, name := range []string{"g0", "g1", "g2"} {
			w.offering(name, "d1", chips, gpuNode(4))
		}
		w.settle()
		w.running("tpus", "while others of its type have other nodes")
		w.requesting("tpus", "t0: 4 google.com/tpu", "t1: 4 google.com/tpu")
		w.requesting("waits", ": 4 google.com/tpu")
		w.leftOut(map[string]string{"t0": "it offers google.com/tpu", "t1": "it offers google.com/tpu"})
		if r := w.Book.Refusal(w.Runs["waits"].UID); r == nil || r.Reason != plan.WrongResource ||
			!strings.Contains(r.Message, "suspend the Run and resume it (spec.suspend)") {
			w.t.Fatalf("it waits: %v", r)
		}
		w.suspend("waits", true)
		w.settle()
		w.suspend("waits", false)
		w.settle()
		w.requesting("waits", "g0: 4 nvidia.com/gpu", "g1: 4 nvidia.com/gpu")

		w.Lose("t0")
		w.reconcile("tpus")
		w.reconcile("tpus")
		w.requesting("tpus", ": 4 google.com/tpu", "t1: 4 google.com/tpu")
		w.settle()
		if r := w.Runs["tpus"]; r.Status.Phase != rqv1.RunFailed ||
			!strings.Contains(r.Status.Message, "4 more GPUs are free on nodes that these pods may not use") {
			w.t.Fatalf("without another node with TPUs it is %s: %s", r.Status.Phase, r.Status.Message)
		}
	})
}

// A pod that no Run made and that asks for any of the resources is no business of jobtree's, and is told by its name.
func TestForeignPodsOfEachResource(t *testing.T) {
	args, err := config.Parse([]byte("{gpuResource: [nvidia.com/gpu, google.com/tpu]}"))
	if err != nil {
		t.Fatal(err)
	}
	b := book.New(args)
	for _, name := range []corev1.ResourceName{nvidia, google} {
		refusal := b.Foreign(asking(map[corev1.ResourceName]string{name: "4"}, nil))
		if refusal == nil || !strings.Contains(refusal.Message, "4 "+string(name)) {
			t.Errorf("%s: %v", name, refusal)
		}
	}
}
