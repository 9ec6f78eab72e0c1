package story

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// refusedStories are of Runs that cannot start, and say why.
func refusedStories() (all []Story) {
	for name, c := range map[string]struct {
		gpus         int32
		change       RunChange
		reason, says string
	}{
		"group-above-any-domain": {16, InGroups(16), "NeverFits", "a group needs 16"},
		"pod-above-any-node":     {16, InPods(16), "NeverFits", "a pod needs 16"},
		"above-the-fleet":        {64, func(*rqv1.Run) {}, "NeverFits", "64"},
		"unknown-type": {8, func(r *rqv1.Run) { r.Spec.Resources.GPUType = "A1000" }, "UnknownGPUType",
			"no node has GPUs of type A1000"},
		"unknown-owner": {8, func(r *rqv1.Run) { r.Spec.Owner = "org:nobody:here" }, "NoBudget",
			"no Budget of owner org:nobody:here"},
		"no-such-node": {8, Templated(func(of *corev1.PodTemplateSpec) {
			of.Spec.NodeSelector = map[string]string{"disk": "fast"}
		}), "InsufficientGPUs", "on nodes that these pods may not use"},
	} {
		all = append(all, Story{Name: "refused-" + name, Play: func(s *Teller) {
			refused(s, c.gpus, c.change, c.reason, c.says)
		}})
	}
	return append(all,
		Story{Name: "refused-huge", Play: hugeRun},
		Story{Name: "refused-outside-a-window", Play: outsideAWindow},
		Story{Name: "budget-deleted", Play: budgetDeleted},
		Story{Name: "nodes-that-are-not-used", Play: nodesNotUsed})
}

// refused submits a Run that cannot start to two domains of one node each, beside one that can: the status says why, in
// a message and a reason, and nothing is held.
func refused(s *Teller, gpus int32, change RunChange, reason, says string) {
	s.Nodes("d0", 1)
	s.Nodes("d1", 1)
	s.Fund("", Envelope("all", 2000000))
	s.Submit("refused", gpus, change)
	s.Refused("refused", reason, says)
	s.Submit("fits", 16)
	s.Says("fits", rqv1.RunRunning, "bound 16 GPUs")
	s.Nothing("refused")
}

// hugeRun submits the widest Run that the API takes: it is refused before a pod of it is made, and it is looked at
// again when nodes are added.
func hugeRun(s *Teller) {
	s.Nodes("d0", 1)
	s.Fund("", Envelope("all", 2000000))
	s.Submit("huge", 1000000)
	s.Submit("wide", 16)
	s.Says("huge", rqv1.RunPending, "at most 8 fit")
	s.Says("wide", rqv1.RunPending, "at most 8 fit")
	s.Same("how many pods are made", 0, len(s.Pods("huge"))+len(s.Pods("wide")))
	s.Nodes("d1", 1)
	s.Says("huge", rqv1.RunPending, "at most 16 fit")
	s.Says("wide", rqv1.RunRunning, "bound 16 GPUs")
}

// outsideAWindow refuses a Run for a window that has closed, and has it wait for one that opens in a moment.
func outsideAWindow(s *Teller) {
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: s.Now().Add(d).Truncate(time.Second)} }
	text := func(t *metav1.Time) string { return t.UTC().Format(time.RFC3339) }
	window := func(start, end *metav1.Time) {
		s.Fund("", Envelope("all", 8, func(e *rqv1.Envelope) { e.Start, e.End = start, end }))
	}
	s.Nodes("d0", 1)
	closed := at(-time.Hour)
	window(at(-2*time.Hour), closed)
	s.Submit("train", 8)
	s.Says("train", rqv1.RunPending, "its window closed at "+text(closed))
	opens := at(time.Hour)
	window(opens, nil)
	s.Says("train", rqv1.RunPending, "its window opens at "+text(opens))
	opens = at(10 * time.Second)
	window(opens, nil)
	s.Says("train", rqv1.RunPending, "its window opens at "+text(opens))
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	if start := s.World().LeasesOf("train")[0].Spec.Start; start.Time.Before(opens.Time) {
		s.Errorf("the Run started at %s, before its window opened at %s", start, opens)
	}
}

// budgetDeleted deletes a Budget that pays: what runs goes on, nothing new starts, and once the Budget is back its
// usage goes on too.
func budgetDeleted(s *Teller) {
	s.Nodes("d0", 2)
	s.Nodes("d1", 2)
	s.Fund("", Envelope("all", 24))
	s.Submit("running", 16)
	s.Says("running", rqv1.RunRunning, "bound 16 GPUs")
	s.Defund("")
	s.Submit("new", 8)
	s.Says("new", rqv1.RunPending, "no Budget of owner")
	s.Says("running", rqv1.RunRunning, "bound 16 GPUs")
	s.Sound()
	s.Fund("", Envelope("all", 16))
	s.Says("new", rqv1.RunPending, "16 of 16 GPUs in use")
	s.Sound()
	s.Fund("", Envelope("all", 24))
	s.Says("new", rqv1.RunRunning, "bound 8 GPUs")
}

// nodesNotUsed has one usable node among others that are not, each for a reason of its own.
func nodesNotUsed(s *Teller) {
	s.Fund("", Envelope("all", 100))
	s.Node("cordoned", "a", Cordoned)
	s.Node("tainted", "a", Tainted("team", "other", corev1.TaintEffectNoSchedule))
	s.Node("full", "a")
	s.Node("mislabelled", "a", Without("fabric.domain"))
	s.Node("usable", "a")
	s.Occupy("holder", "full", GPUs(1))
	s.Submit("two", 16, InPods(8))
	s.Says("two", rqv1.RunPending, "short by 8")
	s.Submit("one", 8)
	s.Says("one", rqv1.RunRunning, "bound 8 GPUs")
	s.Holds("one", Places{"usable": 8})
	s.Submit("tolerant", 8, Templated(func(of *corev1.PodTemplateSpec) {
		of.Spec.Tolerations = []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}}
	}))
	s.Says("tolerant", rqv1.RunRunning, "bound 8 GPUs")
	s.Holds("tolerant", Places{"tainted": 8})
}
