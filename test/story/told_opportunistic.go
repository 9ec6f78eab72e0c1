package story

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// opportunisticStories are of Runs that take what nobody else uses, a pod at a time: their pods are shards.
func opportunisticStories() []Story {
	return []Story{
		{Name: "shards-fill-and-swap", Play: fillAndSwap},
		{Name: "shards-give-way", Play: shardsGiveWay},
		{Name: "shards-that-are-younger-go", Play: youngerShardsGo},
		{Name: "shards-left-alone", Play: shardsLeftAlone},
		{Name: "shards-with-their-node", Play: shardsWithTheirNode},
		{Name: "shards-end", Play: shardsEnd},
		{Name: "fewer-shards", Play: fewerShards},
	}
}

// Shards waits until so many shards of a Run, of two GPUs each, run, and returns how many are on each node.
func (s *Teller) Shards(run string, count int) (on map[string]int) {
	s.T.Helper()
	s.Until(fmt.Sprintf("%d shards of Run %s", count, run), func() error {
		on = map[string]int{}
		bound := 0
		for name, pod := range s.Pods(run) {
			if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
				on[s.On(name)]++
				bound++
			}
		}
		if w := s.Run(run).Status.Width; bound != count || w == nil || int(w.Allocated) != 2*count {
			return fmt.Errorf("%d are: %+v", bound, w)
		}
		return nil
	})
	return on
}

// Borrowed waits until the Leases of a Run's shards have closed for such reasons; no other Lease is its.
func (s *Teller) Borrowed(run string, want Leases) {
	s.T.Helper()
	s.Ledger(run, want)
	for _, l := range s.World().LeasesOf(run) {
		s.Same("the role of Lease "+l.Name, rqv1.RoleBorrowed, l.Spec.Slice.Role)
	}
}

// fillAndSwap is worked example 3: shards run on the idle node and on the one of the spare; when a node of J1 fails,
// those on the spare's give way to it, within seconds.
func fillAndSwap(s *Teller) {
	s.Nodes("a", 18, WithGPUs(4))
	s.Fund("alpha", Envelope("all", 68))
	s.Fund("beta", Envelope("all", 1))
	s.Submit("j1", 64, s.By("alpha"), InPods(4), InGroups(64), Spares(4))
	s.Says("j1", rqv1.RunRunning, "bound 64 GPUs")
	before, spare := s.Pods("j1"), s.On("j1-s0")

	s.Submit("j2", 16, s.By("beta"), InPods(2), Opportunistic)
	on := s.Shards("j2", 4)
	s.Same("shards on the spare's node, and on how many nodes", []int{2, 2}, []int{on[spare], len(on)})
	s.Says("j2", rqv1.RunRunning, "4 of 8 shards run; the others wait: no idle GPUs fit a shard")
	s.Sound()

	failed, began := s.On("j1-3"), s.Now()
	s.Lose(failed)
	s.Says("j1", rqv1.RunRunning, "group 0 swapped to spare after node failure")
	if took := s.Now().Sub(began); took > 10*time.Second {
		s.Errorf("the swap took %s", took)
	}
	after := s.Shards("j2", 2)
	delete(on, spare)
	s.Same("where shards run", on, after)
	s.Sound()
	s.Same("the node of rank 3", spare, s.On("j1-3"))
	s.Borrowed("j2", Leases{Open: 2, "ReclaimedBySpare": 2})
	c := meta.FindStatusCondition(s.Run("j2").Status.Conditions, rqv1.ConditionReclaimed)
	s.Same("it tells why its shards gave way", true, c != nil && c.Reason == string(rqv1.ClosedReclaimedBySpare))
	s.Until("J1's Leases", func() error {
		reasons := map[string]int{}
		for _, l := range s.World().LeasesOf("j1") {
			reasons[fmt.Sprint(l.Spec.Slice.Role, " ", l.Spec.Reason, " ", l.Status.ClosureReason)]++
		}
		return differs(map[string]int{
			"Active Start ": 15, "Active Start NodeFailure": 1, "Spare Start Swap": 1, "Active Swap ": 1, "Spare Start ": 1,
		}, reasons)
	})
	s.Same("the failed node is cordoned", true, s.IsNode(failed).Spec.Unschedulable)
	s.untouched("j1", before, "j1-3")
}

// untouched asserts that all ranks of a Run, but for some, are the pods that they were. Spares may have moved.
func (s *Teller) untouched(run string, before Pods, but string) {
	s.T.Helper()
	for name, pod := range s.Pods(run) {
		if pod.Labels[rqv1.LabelRole] == string(rqv1.RoleActive) {
			s.Same(name+" is the same", name != but, pod.UID == before[name].UID)
		}
	}
}

// shardsGiveWay has a normal Run fit only where shards run: the youngest go, and no more than it takes. They come back
// when it has ended.
func shardsGiveWay(s *Teller) {
	s.Nodes("d0", 3)
	s.Fund("", Envelope("all", 100))
	s.Submit("sweep", 24, InPods(2), Opportunistic)
	s.Shards("sweep", 12)
	s.Says("sweep", rqv1.RunRunning, "12 of 12 shards run")
	s.Submit("train", 10, InPods(2))
	s.Says("train", rqv1.RunRunning, "bound 10 GPUs")
	s.Shards("sweep", 7)
	s.Sound()
	s.Borrowed("sweep", Leases{Open: 7, "Reclaimed": 5})
	s.Remove("train")
	s.Shards("sweep", 12)
}

// youngerShardsGo has a Run need half of a node that is full of shards of two Runs: those of the one that came later
// go.
func youngerShardsGo(s *Teller) {
	s.Nodes("d0", 1)
	s.Fund("", Envelope("all", 100))
	s.Submit("older", 4, InPods(2), Opportunistic)
	s.Shards("older", 2)
	s.Later(2 * time.Second)
	s.Submit("later", 4, InPods(2), Opportunistic)
	s.Shards("later", 2)
	s.Submit("train", 4, InPods(2))
	s.Says("train", rqv1.RunRunning, "bound 4 GPUs")
	s.Borrowed("later", Leases{"Reclaimed": 2})
	s.Borrowed("older", Leases{Open: 2})
}

// shardsLeftAlone starts a Run beside shards, where there is other room.
func shardsLeftAlone(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 100))
	s.Submit("sweep", 4, InPods(2), Opportunistic)
	on := s.Shards("sweep", 2)
	s.Submit("train", 8, InPods(8))
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	s.Sound()
	s.Same("where shards run", on, s.Shards("sweep", 2))
	s.Borrowed("sweep", Leases{Open: 2})
}

// shardsWithTheirNode loses a node that hosts a shard alone: it runs elsewhere, and nobody else is hurt. Each node has
// room for one, so that it is no chance who is where.
func shardsWithTheirNode(s *Teller) {
	s.Nodes("d0", 3, WithGPUs(2))
	s.Fund("", Envelope("all", 100))
	s.Submit("sweep", 4, InPods(2), Opportunistic)
	on := s.Shards("sweep", 2)
	before, lost := s.Pods("sweep"), s.On("sweep-0")
	s.Same("shards on each node", map[string]int{lost: 1, s.On("sweep-1"): 1}, on)
	s.Lose(lost)
	s.Borrowed("sweep", Leases{Open: 2, "NodeFailure": 1})
	s.Same("shards on the lost node", 0, s.Shards("sweep", 2)[lost])
	s.Same("the other shard", before["sweep-1"].UID, s.Pods("sweep")["sweep-1"].UID)
}

// shardsEnd has shards complete one by one: those that have ended well do not run again, the next takes the place of
// each, and the Run completes with the last.
func shardsEnd(s *Teller) {
	s.Nodes("d0", 1)
	s.Submit("sweep", 16, s.By("nobody"), InPods(2), Opportunistic)
	s.Says("sweep", rqv1.RunPending, "0 of 8 shards run; the others wait: no Budget of owner ")
	s.Fund("nobody", Envelope("all", 1))
	for i := range 8 {
		s.Shards("sweep", min(4, 8-i))
		s.Exit(fmt.Sprintf("sweep-%d", i), Well)
	}
	s.Says("sweep", rqv1.RunCompleted, "all 8 pods completed")
	s.Sound()
	s.Borrowed("sweep", Leases{"Completed": 8})
}

// fewerShards has a Run of shards desire fewer: the highest go at once.
func fewerShards(s *Teller) {
	s.Nodes("d0", 1)
	s.Fund("", Envelope("all", 100))
	s.Submit("sweep", 8, Elastic(2, 8, 2), Opportunistic)
	s.Shards("sweep", 4)
	before := s.Pods("sweep")
	s.Edit("sweep", Desires(4))
	s.Shards("sweep", 2)
	s.Borrowed("sweep", Leases{Open: 2, "Shrink": 2})
	s.Sound()
	s.Same("its width", rqv1.RunWidth{Max: 8, Desired: 4, Allocated: 4}, *s.Run("sweep").Status.Width)
	for name, pod := range s.Pods("sweep") {
		s.Same(name+" was there", pod.UID, before[name].UID)
		s.Same(name+" is one of the lowest", true, strings.HasSuffix(name, "-0") || strings.HasSuffix(name, "-1"))
	}
}
