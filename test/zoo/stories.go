package zoo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/test/story"
)

// What every workload goes through.
var situations = []situation{
	{name: "starts", play: (*told).starts},
	{name: "waits", play: (*told).waits},
	{name: "loses-a-node", play: (*told).losesANode},
	{name: "is-evicted", play: (*told).isEvicted},
	{name: "outlives-the-scheduler", play: (*told).outlivesTheScheduler, alone: "it kills the scheduler"},
}

// situation is something that workloads go through, and why they go through it alone.
type situation struct {
	name, alone string
	play        func(*told)
}

// Stories returns what all workloads go through, where the controllers that are built in run, or do not. The names of
// files are short, so that these are.
func Stories(real bool) (out []story.Story) {
	all, err := Workloads()
	if err != nil {
		panic(err)
	}
	for i := range all {
		w := &all[i]
		if w.Told != "" {
			out = append(out, w.story(situation{name: "is-told", play: (*told).isTold}, real))
			continue
		}
		for _, in := range slices.Concat(situations, disturbed(), w.rollouts()) {
			out = append(out, w.story(in, real))
		}
	}
	return out
}

func (w *Workload) story(in situation, real bool) story.Story {
	return story.Story{Name: w.Name + "-" + in.name, Alone: in.alone, Play: func(s *story.Teller) {
		t := &told{Teller: s, w: w, keeper: newKeeper(s.Cluster, real)}
		t.fleet()
		in.play(t)
		t.over()
	}}
}

// told tells what a workload goes through.
type told struct {
	*story.Teller
	*keeper
	w *Workload
}

const (
	gpuNodes = 5
	gpuTaint = "nvidia.com/gpu"
	flavored = "gpu.flavor"
)

// fleet is a cluster as people have it: nodes with GPUs that are tainted, of two types, and one without.
func (t *told) fleet() {
	taint := story.Tainted(gpuTaint, "present", corev1.TaintEffectNoSchedule)
	t.Nodes("d0", gpuNodes, taint)
	t.Nodes("e0", 2, taint, story.Labelled(flavored, t.Site().Flavor+"-other"))
	t.Node("cpu-0", "none", story.WithGPUs(0), story.Without(flavored), story.Without("fabric.domain"))
	t.Fund("", story.Envelope("all", 100))
}

// makes applies the workload's objects.
func (t *told) makes() {
	t.T.Helper()
	site := t.Site()
	if err := t.apply(t.w.in(site.Namespace, site.Flavor, site.Owner)); err != nil {
		t.Fatalf("%v", err)
	}
	if t.w.Resumed {
		o := t.roots[0]
		if err := t.Change(o, func() { o.Object["spec"].(map[string]any)["suspend"] = false }); err != nil {
			t.Fatalf("%v", err)
		}
	}
}

// sees waits until something is so, while the workload's controllers do their work.
func (t *told) sees(what string, check func(w *story.World) error) {
	t.T.Helper()
	t.Until(t.w.Name+" "+what, func() error {
		if err := t.tend(); err != nil {
			return err
		}
		return check(t.World())
	})
}

// isGPU reports whether a pod asks for GPUs of a fleet, in any container.
func isGPU(pod *corev1.Pod) bool {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if q, asks := c.Resources.Limits["nvidia.com/gpu"]; asks && !q.IsZero() {
			return true
		}
	}
	return false
}

// own returns the workload's pods that have not ended, those with GPUs and the others.
func (t *told) own(w *story.World) (gpu, beside []*corev1.Pod) {
	for _, pod := range w.Pods {
		run := pod.Labels[rqv1.LabelRun]
		if pod.Spec.SchedulerName != rqv1.SchedulerName || run == first || run == younger ||
			pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if isGPU(pod) {
			gpu = append(gpu, pod)
		} else {
			beside = append(beside, pod)
		}
	}
	return gpu, beside
}

// groups returns the Runs that stand for the workload.
func groups(w *story.World) (out []*rqv1.Run) {
	for _, run := range w.Runs {
		if _, theirs := group.KeyOf(run); theirs {
			out = append(out, run)
		}
	}
	return out
}

// holds counts the GPUs of the open Leases of Runs that stand for the workload.
func holds(w *story.World) (gpus int) {
	for _, l := range w.Leases {
		if run := l.Spec.RunRef.Name; !l.Status.Closed && run != first && run != younger {
			gpus += int(l.GPUs())
		}
	}
	return gpus
}

// runs is an error unless all of the workload runs, on nodes that are there for it, and is paid for.
func (t *told) runs(w *story.World) error {
	gpu, beside := t.own(w)
	for _, pod := range slices.Concat(gpu, beside) {
		if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("pod %s is %s on %q, told %s", pod.Name, pod.Status.Phase, pod.Spec.NodeName, why(pod))
		}
		node := nodeOf(w, pod.Spec.NodeName)
		if asks := isGPU(pod); asks && node == nil || node != nil && asks != (node.Labels[flavored] == t.Site().Flavor) {
			return fmt.Errorf("pod %s is on %s", pod.Name, pod.Spec.NodeName)
		}
	}
	all := groups(w)
	for _, run := range all {
		if run.Status.Phase != rqv1.RunRunning || run.Spec.Owner != t.Site().Owner {
			return fmt.Errorf("Run %s of %s is %s: %s", run.Name, run.Spec.Owner, run.Status.Phase, run.Status.Message)
		}
	}
	if len(all) != t.w.Groups || holds(w) != t.w.GPUs || len(beside) != t.w.Beside {
		return fmt.Errorf("%d Runs of %d hold %d GPUs of %d, and %d pods of %d run beside", len(all), t.w.Groups, holds(w),
			t.w.GPUs, len(beside), t.w.Beside)
	}
	return nil
}

func nodeOf(w *story.World, name string) *corev1.Node {
	for _, node := range w.Nodes {
		if node.Name == name {
			return node
		}
	}
	return nil
}

// why is what a pod is told of why it is not placed.
func why(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// starts: all of it runs, and nothing is held once it is deleted, which all stories end with.
func (t *told) starts() {
	t.makes()
	t.sees("is to run", t.runs)
	t.Sound()
}

// waiting is an error unless all of the workload waits, holds nothing, and says why: each Run, and a pod of each.
func (t *told) waiting(w *story.World) error {
	gpu, _ := t.own(w)
	if len(gpu) == 0 || holds(w) > 0 {
		return fmt.Errorf("it has %d pods with GPUs, and holds %d GPUs", len(gpu), holds(w))
	}
	told := map[string]bool{}
	for _, pod := range gpu {
		if pod.Spec.NodeName != "" {
			return fmt.Errorf("pod %s is on %s", pod.Name, pod.Spec.NodeName)
		}
		if strings.Contains(why(pod), "short by") {
			told[pod.Labels[rqv1.LabelRun]] = true
		}
	}
	all := groups(w)
	for _, run := range all {
		if run.Status.Phase != rqv1.RunPending || !strings.Contains(run.Status.Message, "short by") {
			return fmt.Errorf("Run %s is %s: %s", run.Name, run.Status.Phase, run.Status.Message)
		}
		if !told[run.Name] {
			return fmt.Errorf("no pod of %s is told why it waits: pod %s is told %q", run.Name, gpu[0].Name, why(gpu[0]))
		}
	}
	if len(all) != t.w.Groups {
		return fmt.Errorf("%d Runs of %d wait", len(all), t.w.Groups)
	}
	return nil
}

// waits: on a full fleet it holds nothing and is told why; once there is room it runs.
func (t *told) waits() {
	t.fills()
	t.makes()
	t.sees("is to wait", t.waiting)
	t.Remove(first)
	t.sees("is to run", t.runs)
	t.Sound()
}

// loses is one of the workload's pods with GPUs, and the UIDs of all.
func (t *told) loses() (pod *corev1.Pod, before map[string]types.UID) {
	t.T.Helper()
	t.sees("is to run", t.runs)
	gpu, _ := t.own(t.World())
	before = map[string]types.UID{}
	for _, is := range gpu {
		before[is.Name] = is.UID
	}
	return gpu[len(gpu)-1], before
}

// recovers waits until the workload is as it is to be after some of its pods have been lost: with others in their
// places, while those go on that nobody ended, or over.
func (t *told) recovers(lost map[string]bool, before map[string]types.UID) {
	t.T.Helper()
	if t.w.Lost == "over" {
		t.sees("is to hold nothing", func(w *story.World) error {
			gpu, _ := t.own(w)
			for _, pod := range gpu {
				if lost[pod.Name] && pod.DeletionTimestamp == nil {
					return fmt.Errorf("pod %s is there", pod.Name)
				}
			}
			if is := holds(w); is != 0 && len(before) == len(lost) {
				return fmt.Errorf("it holds %d GPUs", is)
			}
			return nil
		})
		return
	}
	t.sees("is to run again", func(w *story.World) error {
		gpu, _ := t.own(w)
		is := map[types.UID]bool{}
		for _, pod := range gpu {
			is[pod.UID] = true
		}
		for name, uid := range before {
			if is[uid] == lost[name] && (lost[name] || t.w.Lost == "one") {
				return fmt.Errorf("pod %s is there as it was: %v", name, is[uid])
			}
		}
		return t.runs(w)
	})
}

// on are the names of the workload's pods with GPUs on a node.
func (t *told) on(node string) map[string]bool {
	out := map[string]bool{}
	gpu, _ := t.own(t.World())
	for _, pod := range gpu {
		if pod.Spec.NodeName == node {
			out[pod.Name] = true
		}
	}
	return out
}

// losesANode: what its controllers make in place of the pods that were there runs elsewhere, and nobody else is
// touched.
func (t *told) losesANode() {
	t.makes()
	pod, before := t.loses()
	lost := t.on(pod.Spec.NodeName)
	t.Lose(t.On(pod.Name))
	t.recovers(lost, before)
	if w := t.World(); t.w.Lost != "over" && !slices.ContainsFunc(w.Leases, func(l *rqv1.Lease) bool {
		return l.Status.ClosureReason == rqv1.ClosedNodeFailure
	}) {
		t.Errorf("no Lease has closed for the node")
	}
	t.Sound()
}

// isEvicted: likewise for one pod that somebody evicts.
func (t *told) isEvicted() {
	t.makes()
	pod, before := t.loses()
	t.evicts(pod.Name)
	t.recovers(map[string]bool{pod.Name: true}, before)
	t.Sound()
}

func (t *told) evicts(name string) {
	t.sees("is to be evicted", func(*story.World) error {
		if !t.EvictPod(name) {
			return errors.New("it is not")
		}
		return nil
	})
}

// outlivesTheScheduler: the scheduler dies while the workload waits, as room comes, and as a node is lost. All is as if
// it had not.
func (t *told) outlivesTheScheduler() {
	t.fills()
	t.makes()
	t.sees("is to wait", t.waiting)
	t.Kill()
	t.sees("is to wait still", t.waiting)
	t.Kill(func() { t.Remove(first) })
	pod, before := t.loses()
	lost := t.on(pod.Spec.NodeName)
	t.Kill(func() { t.Lose(t.On(pod.Name)) })
	t.recovers(lost, before)
	t.Sound()
}

// isTold: it is not started, since jobtree does not serve it, and its pods say so; nothing is held.
func (t *told) isTold() {
	t.makes()
	t.sees("is to be told", func(w *story.World) error {
		gpu, _ := t.own(w)
		said := ""
		for _, pod := range gpu {
			if pod.Spec.NodeName != "" {
				return fmt.Errorf("pod %s is on %s", pod.Name, pod.Spec.NodeName)
			}
			said += why(pod) + "\n"
		}
		if !strings.Contains(said, t.w.Told) || holds(w) > 0 {
			return fmt.Errorf("it is told %q, and holds %d GPUs", said, holds(w))
		}
		return nil
	})
}

// over ends a story: the workload is deleted, and nothing of it is left.
func (t *told) over() {
	if err := t.stop(); err != nil {
		t.Fatalf("%v", err)
	}
	t.Until(t.w.Name+" is to be gone", func() error {
		w := t.World()
		gpu, beside := t.own(w)
		all := slices.DeleteFunc(groups(w), func(run *rqv1.Run) bool { return run.Status.Phase == rqv1.RunFailed })
		if pods := len(gpu) + len(beside); pods+len(all) > 0 || holds(w) > 0 {
			return fmt.Errorf("%d pods and %d Runs are left, and hold %d GPUs", pods, len(all), holds(w))
		}
		return nil
	})
	if t.World().Run(younger) != nil {
		t.Says(younger, rqv1.RunRunning)
	}
}
