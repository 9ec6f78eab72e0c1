package book_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// opportunistic makes a Run one of shards.
func opportunistic(s *rqv1.RunSpec) { s.Opportunistic, s.Locality, s.SparesPerGroup = true, nil, nil }

// sweep submits a Run of so many shards of so many GPUs.
func (w *world) sweep(name string, owner rqv1.Owner, shards, gpus int) {
	w.submitWithSpares(name, owner, 1, shards, gpus, 0, opportunistic)
}

// shards returns how many shards of a Run run on each node.
func (w *world) shards(run string) map[string]int {
	out := map[string]int{}
	for _, pod := range w.Pods {
		if pod.Labels[rqv1.LabelRun] == run && pod.Status.Phase == corev1.PodRunning {
			out[pod.Spec.NodeName]++
		}
	}
	return out
}

// checkShards asserts that no shard waits for GPUs that are idle, and that a Run of shards runs while one of them does.
func (w *world) checkShards(fresh *book.Book) {
	fresh.TakeActions()
	fresh.Fill(w.Now)
	for _, pod := range fresh.TakeActions().Activate {
		if pod.Labels[rqv1.LabelRole] == string(rqv1.RoleBorrowed) {
			w.t.Fatalf("shard %s waits although GPUs are idle:\n%s", pod.Name, w.describe(pod.Labels[rqv1.LabelRun]))
		}
	}
	for name, run := range w.Runs {
		if running := len(w.shards(name)) > 0; run.Spec.Opportunistic && running != (run.Status.Phase == rqv1.RunRunning) {
			w.t.Fatalf("%s is %s, and shards of it run: %v", name, run.Status.Phase, running)
		}
	}
}

func TestShardsRunUnderSparesAndWhereGPUsAreIdle(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(3, 1, 1) // a pod and a spare of 8 GPUs, and an idle node
		w.sweep("run1", "org:b", 20, 2)
		w.settle()
		if on := w.shards("run1"); len(on) != 2 || on["n0"]+on["n1"]+on["n2"] != 8 {
			w.t.Fatalf("shards run on %v, want four on each of two nodes", on)
		}
		w.expect("run1", rqv1.RunRunning, "8 of 20 shards run; the others wait: no idle GPUs fit a shard",
			map[string]int{"open Start Borrowed": 8})
		w.check()
		w.checkSettled()
	})
}

func TestShardsGiveWayToASpareThatIsNeeded(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(2, 1, 1)
		w.sweep("run1", "org:b", 4, 2)
		w.settle()
		w.Lose(w.Pods[w.pod("run0-0")].Spec.NodeName)
		w.settle()
		w.expect("run0", rqv1.RunRunning, "group 0 swapped to spare after node failure",
			map[string]int{"NodeFailure": 1, "Swap": 1, "open Swap Active": 1})
		w.expect("run1", rqv1.RunPending, "0 of 4 shards run; the others wait: no idle GPUs fit a shard",
			map[string]int{"ReclaimedBySpare": 4})
		w.checkSettled()
	})
}

func TestShardsGiveWayToARunThatFitsNowhereElse(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 16)
		w.sweep("run0", "org:a", 4, 4)
		w.settle()
		w.Pass(time.Minute)
		w.submit("run1", "org:a", 1, 1, 4)
		w.settle()
		w.running("run1", "although only shards are in its way")
		w.expect("run0", rqv1.RunRunning, "3 of 4 shards run; the others wait: no idle GPUs fit a shard",
			map[string]int{"Reclaimed": 1, "open Start Borrowed": 3})
		w.DeleteRun("run1")
		w.settle()
		w.expect("run0", rqv1.RunRunning, "4 of 4 shards run", map[string]int{"Reclaimed": 1, "open Start Borrowed": 4})
	})
}

func TestShardsAreLeftAloneByARunThatFitsBesideThem(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 16)
		w.sweep("run0", "org:a", 2, 4)
		w.settle()
		w.submit("run1", "org:a", 1, 1, 8)
		w.settle()
		w.running("run1", "although it fits")
		w.expect("run0", rqv1.RunRunning, "2 of 2 shards run", map[string]int{"open Start Borrowed": 2})
	})
}

func TestALostNodesShardsRunElsewhere(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 16)
		w.sweep("run0", "org:a", 2, 4)
		w.settle()
		for node := range w.shards("run0") {
			w.Lose(node)
		}
		w.settle()
		w.expect("run0", rqv1.RunRunning, "2 of 2 shards run", map[string]int{"NodeFailure": 2, "open Start Borrowed": 2})
		w.checkSettled()
	})
}

func TestAProcessThatStartsHasShardsLeaveWhoAreInTheWay(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 16)
		w.sweep("run0", "org:a", 2, 4)
		w.settle()
		w.submit("run1", "org:a", 1, 1, 8)
		for range 2 {
			for _, name := range w.Names() {
				w.reconcile(name)
			}
			for _, uid := range w.SortedPods() {
				w.cycle(uid)
			}
			w.crash()
		}
		w.settle()
		w.running("run1", "although only shards are in its way")
		if ledger := w.ledger("run0"); ledger["open Start Borrowed"] > 0 {
			w.t.Fatalf("shards are left: %v", ledger)
		}
		w.checkSettled()
	})
}

func TestShardsTurnedDownByANodeKeepOffItForAWhile(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.setBudget("a", "org:a", 16)
		w.sweep("run0", "org:a", 1, 4)
		w.reconcile("run0")
		w.Book.Fill(w.Now)
		uid := w.pod("run0-0")
		first := w.Book.Assigned(uid)
		w.Book.Turned(uid, first, "no CPU")
		w.Book.Fill(w.Now.Add(time.Second))
		if second := w.Book.Assigned(uid); second == first || !slices.Contains([]string{"n0", "n1"}, second) {
			w.t.Fatalf("the shard goes to %q after %s turned it down", second, first)
		}
	})
}

// Some shards of a Run get what is idle. What the others are refused is what they are when they ask again: about them
// alone.
func TestShardsThatAreLeftAreRefusedAsTheyAreAgain(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 3)
		w.setBudget("a", "org:a", 24)
		w.sweep("run0", "org:a", 3, 8)
		w.Book.Fill(w.Now)
		w.reconcile("run0")
		w.cordoned("d0-n01", true)
		w.cordoned("d0-n02", true)
		w.Book.Fill(w.Now)
		refused := w.Book.Refusal(w.Runs["run0"].UID)
		if refused == nil || refused.WantedGPUs != 16 || refused.ShortGPUs != 16 {
			w.t.Fatalf("refused %+v, want all of 16 GPUs short", refused)
		}
		w.Book.Controllers().Take()
		w.Book.Fill(w.Now)
		if diff := cmp.Diff(book.ForControllers{}, w.Book.Controllers().Take()); diff != "" {
			w.t.Fatalf("the controllers are asked once more:\n%s%+v", diff, w.Book.Refusal(w.Runs["run0"].UID))
		}
	})
}

func TestWhatIfAShardedRunWereSubmitted(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(2, 1, 1)
		run := &rqv1.Run{Spec: rqv1.RunSpec{Owner: "org:b", Opportunistic: true,
			Resources: rqv1.RunResources{GPUType: flavor, TotalGPUs: 16, GPUsPerPod: new(int32)}}}
		*run.Spec.Resources.GPUsPerPod = 2
		if o := w.Book.WhatIf(run, w.Now); o.GPUs != 8 || o.Refusal == nil || len(o.Places) != 4 {
			w.t.Fatalf("it would run on %d GPUs, %d places, %v; want 8 under the spare", o.GPUs, len(o.Places), o.Refusal)
		}
	})
}
