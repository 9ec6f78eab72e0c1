package controllers

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	core "k8s.io/client-go/testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// groupWorld is a group of some pods to which all sorts of things happen.
type groupWorld struct {
	*grouped
	random *rand.Rand
	size   int
	made   int
	story  []string
	// instant has deleted pods be gone at once.
	instant bool
}

// eachPod returns the pods that there are, by name.
func (w *groupWorld) eachPod() map[string]*corev1.Pod {
	list, err := w.kube.CoreV1().Pods("ns").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]*corev1.Pod{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// any returns one of the pods that there are; nil where there are none.
func (w *groupWorld) any() *corev1.Pod {
	pods := w.eachPod()
	names := slices.Sorted(maps.Keys(pods))
	if len(names) == 0 {
		return nil
	}
	return pods[names[w.random.IntN(len(names))]]
}

// comes makes a pod of the group, unless one has its name.
func (w *groupWorld) comes(name, account string) {
	if w.eachPod()[name] != nil {
		return
	}
	w.made++
	pod := inGroup(name, account)
	pod.Spec.Containers[0].Resources.Limits, pod.Spec.Containers[0].Resources.Requests = gpus("4"), gpus("4")
	pod.UID, pod.CreationTimestamp = types.UID(fmt.Sprintf("uid%d", w.made)), metav1.NewTime(w.clock.Now())
	pod.Annotations[rqv1.AnnotationGroupSize] = strconv.Itoa(w.size)
	if _, err := w.kube.CoreV1().Pods("ns").Create(w.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.groups.note(pod)
}

// changes writes over a pod, and has it seen.
func (w *groupWorld) changes(pod *corev1.Pod) {
	w.update(pod)
	if rank.Ended(pod) {
		w.groups.drop(pod)
	} else {
		w.groups.note(pod)
	}
	w.see()
	if rank.Theirs(pod) {
		w.groups.member(pod)
	}
}

// goes has a pod be gone.
func (w *groupWorld) goes(pod *corev1.Pod) {
	w.instant = true
	defer func() { w.instant = false }()
	if err := w.kube.CoreV1().Pods("ns").Delete(w.t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.groups.drop(pod)
	w.see()
	if rank.Theirs(pod) {
		w.groups.gone(pod)
	}
}

// ranks has the group's Run looked at, which gives ranks to pods, takes them away, and ends pods.
func (w *groupWorld) ranks() {
	w.see()
	before := w.eachPod()
	if _, err := w.reconcile(w.t.Context(), runOf(group.Of(inGroup("x", "payer")).Key)); err != nil {
		w.t.Fatal(err)
	}
	w.see()
	after := w.eachPod()
	for name, was := range before {
		is := after[name]
		if is == nil {
			w.groups.drop(was)
			w.groups.gone(was)
		} else if !equality.Semantic.DeepEqual(was, is) {
			w.groups.note(is)
		}
	}
}

// binds has pods with a rank be placed, and bound once all of a gang have places.
func (w *groupWorld) binds() {
	w.see()
	now := w.clock.Now()
	var placed []*corev1.Pod
	for _, pod := range w.unbound() {
		if !rank.Theirs(pod) || pod.DeletionTimestamp != nil || w.book.Gate(pod) != "" {
			continue
		}
		if node, refusal := w.book.Place(pod.UID, now); refusal == nil && w.book.Reserve(pod.UID, node) == nil {
			pod.Spec.NodeName = node
			placed = append(placed, pod)
		}
	}
	open := false
	for _, pod := range placed {
		is, _, _ := w.book.Arrive(pod.UID, now)
		open = open || is
	}
	if !open {
		for _, pod := range placed {
			w.book.Unreserve(pod.UID, now)
		}
		return
	}
	for _, pod := range placed {
		lease, err := w.book.NewLease(pod.UID, now)
		if err != nil {
			continue // its gang has given its places back
		}
		lease.UID = "lease-of-" + pod.UID
		if err := w.kinds.Create(w.t.Context(), lease); err != nil {
			w.t.Fatal(err)
		}
		pod.Status.Phase = corev1.PodRunning
		w.changes(pod)
	}
}

// crash has another process take over.
func (w *groupWorld) crash() {
	w.restart()
	w.groups.decides.Store(true)
	w.named("o")
	for _, pod := range w.eachPod() {
		if !rank.Ended(pod) {
			w.groups.note(pod)
		}
	}
}

// joined has a pod come that may not pay: it costs a group that has its Run nothing.
func (w *groupWorld) joined() {
	look := func() (uid types.UID) {
		for range 4 {
			w.looks(inGroup("x", "payer"))
		}
		w.see()
		for _, run := range w.runsOf() {
			if run.Spec.Owner == "o" { // else another is to stand for the group
				uid = run.UID
			}
		}
		return uid
	}
	w.named("o")
	was := look()
	w.comes("thief", "thief")
	if is := look(); was != "" && is != was {
		w.t.Errorf("who may not pay has cost the group its Run: %s", strings.Join(w.story, ", "))
	}
}

// deletesRun has somebody delete the group's Run.
func (w *groupWorld) deletesRun() {
	w.see()
	for _, run := range w.runsOf() {
		if err := w.kinds.Delete(w.t.Context(), run.DeepCopy()); err != nil {
			w.t.Fatal(err)
		}
		w.see()
		w.groups.ended(run)
	}
}

// graceful has bound pods take their time to go.
func (w *groupWorld) graceful() {
	w.kube.PrependReactor("delete", "pods", func(a core.Action) (bool, runtime.Object, error) {
		o, err := w.kube.Tracker().Get(a.GetResource(), "ns", a.(core.DeleteAction).GetName())
		if err != nil || w.instant || o.(*corev1.Pod).Spec.NodeName == "" {
			return false, nil, nil
		}
		if pod := o.(*corev1.Pod).DeepCopy(); pod.DeletionTimestamp == nil {
			pod.DeletionTimestamp = &metav1.Time{Time: w.clock.Now()}
			w.update(pod)
		}
		return true, nil, nil
	})
}

// unheard takes away what has been told, of which there is room for some only.
func (w *groupWorld) unheard() {
	for len(w.told.Events) > 0 {
		<-w.told.Events
	}
}

// step has something happen, and says what.
func (w *groupWorld) step() string {
	w.unheard()
	name := string(rune('a' + w.random.IntN(w.size+1)))
	pod := w.any()
	switch n := w.random.IntN(16); {
	case n < 4 || pod == nil:
		w.comes(name, "payer")
		return name + " comes"
	case n == 4 && pod.DeletionTimestamp == nil:
		pod.DeletionTimestamp = &metav1.Time{Time: w.clock.Now()}
		w.changes(pod)
		return pod.Name + " is told to go"
	case n == 5:
		w.goes(pod)
		return pod.Name + " goes"
	case n == 6:
		w.crash()
		return "crash"
	case n == 7:
		w.clock.Step(time.Duration(w.random.IntN(90)) * time.Second)
		return "time passes"
	case n == 8 && pod.Spec.NodeName != "":
		pod.Status.Phase = []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded}[w.random.IntN(2)]
		w.changes(pod)
		return fmt.Sprintf("%s has %s", pod.Name, pod.Status.Phase)
	case n == 12:
		w.joined()
		return "a thief comes"
	case n == 15:
		w.deletesRun()
		return "somebody deletes the Run"
	case n == 13:
		w.named("nobody")
		return "the namespace names another"
	case n == 14:
		w.named("o")
		return "the namespace names its owner"
	case n == 9:
		w.ranks()
		return "ranks"
	case n == 10:
		w.binds()
		return "binds"
	}
	w.looks(inGroup("x", "payer"))
	return "look"
}

// settles has everybody do what is to be done until nothing changes, and reports whether that comes to an end.
func (w *groupWorld) settles() bool {
	for quiet := range 60 {
		w.unheard()
		for _, pod := range w.eachPod() {
			if pod.DeletionTimestamp != nil {
				w.goes(pod)
			}
		}
		wrote, _ := w.looks(inGroup("x", "payer"))
		before := len(w.eachPod())
		w.see()
		w.ranks()
		w.binds()
		again, _ := w.looks(inGroup("x", "payer"))
		if quiet > 3 && len(wrote)+len(again) == 0 && before == len(w.eachPod()) {
			return true
		}
		w.clock.Step(w.groups.deadline / 4)
	}
	return false
}

// TestGroupsComeToRest whatever has happened to their pods: once all of a group is there its Run has it and runs, and
// once none of it is there is no Run that stands for it.
func TestGroupsComeToRest(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &groupWorld{grouped: newGrouped(t), random: rand.New(rand.NewPCG(seed, 1))}
			w.size = 1 + w.random.IntN(3)
			w.named("o")
			w.graceful()
			w.payersAre(map[string]bool{"payer": true})
			for range 10 + w.random.IntN(40) {
				w.story = append(w.story, w.step())
			}
			w.named("o")
			for name, pod := range w.eachPod() { // who was told to go goes, and whoever has ended is taken away
				if name == "thief" && rank.Theirs(pod) {
					t.Errorf("who may not pay has a rank: %s", strings.Join(w.story, ", "))
				}
				if pod.DeletionTimestamp != nil || rank.Ended(pod) || name == "thief" || name == string(rune('a'+w.size)) {
					w.goes(pod)
				}
			}
			for i := range w.size {
				w.comes(string(rune('a'+i)), "payer")
			}
			story := strings.Join(w.story, ", ")
			if !w.settles() {
				t.Fatalf("Runs are written without end: %s", story)
			}
			runs := w.runsOf()
			for _, run := range runs {
				if run.Status.Phase != rqv1.RunRunning {
					t.Errorf("its Run of %d GPUs is %s (%s): %s", run.Spec.Resources.TotalGPUs, run.Status.Phase, run.Status.Message,
						story)
				}
			}
			for name, pod := range w.eachPod() {
				if !rank.Theirs(pod) || pod.Spec.NodeName == "" {
					t.Errorf("%s of %d pods has labels %v, and is told %q, with %d Runs: %s", name, w.size, pod.Labels,
						w.toldOf(pod), len(runs), story)
				}
			}
			for _, pod := range w.eachPod() {
				w.goes(pod)
			}
			if seed%2 == 0 {
				w.comes("thief", "thief")
			}
			if left := w.runsOf(); !w.settles() || len(left) > 0 && slices.ContainsFunc(slices.Collect(maps.Values(w.runsOf())),
				func(run *rqv1.Run) bool { return !run.Ended() }) {
				t.Errorf("%d Runs are left of no pods: %s", len(w.runsOf()), story)
			}
		})
	}
}
