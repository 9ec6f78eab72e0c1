package story

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// drainStories are of nodes that people empty.
func drainStories() []Story {
	return []Story{
		{Name: "two-drains-at-once", Play: twoDrainsAtOnce},
		{Name: "two-drains-called-off", Play: twoDrainsCalledOff},
		{Name: "drain-waits-for-cpu", Play: drainWaitsForCPU},
	}
}

// guardedAfter is how long a Run runs before its ranks are kept from being evicted.
const guardedAfter = time.Minute

// Emptied waits until ranks have left nodes on which others are told to go again and again, as kubectl drain does. At
// no time may a Run lack more than one of its ranks.
func (s *Teller) Emptied(run string, until func() error, nodes ...string) {
	s.T.Helper()
	for _, node := range nodes {
		s.ChangeNode(node, Cordoned)
	}
	s.Until(fmt.Sprintf("the drain of %v", nodes), func() error {
		missing := int(s.Run(run).Spec.Resources.TotalGPUs / 8)
		pods := s.Pods(run)
		for _, name := range sortedKeys(pods) {
			pod := pods[name]
			if pod.Labels[rqv1.LabelRole] == string(rqv1.RoleActive) && pod.DeletionTimestamp == nil &&
				pod.Status.Phase == corev1.PodRunning {
				missing--
			}
			for _, node := range nodes {
				if s.On(name) == node && pod.DeletionTimestamp == nil {
					_ = s.Evict(name) // or not, and then again
					break
				}
			}
		}
		if missing > 1 {
			s.Fatalf("%d ranks of Run %s are missing at a time", missing, run)
		}
		return until()
	})
}

// waits is an error unless a Run says that a drain waits, and for what.
func (s *Teller) waits(run, text string) error {
	c := meta.FindStatusCondition(s.Run(run).Status.Conditions, rqv1.ConditionDrainWaits)
	if c == nil || !strings.Contains(s.short(c.Message), text) || string(c.Status) != "True" {
		return fmt.Errorf("it says %+v", c)
	}
	return nil
}

// twoDrainsAtOnce has two nodes be emptied at once under a Run with one spare. The rank of one goes to the spare; the
// other's waits until there is room, and it is said why.
func twoDrainsAtOnce(s *Teller) {
	s.Nodes("d0", 3)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 16, InPods(8), InGroups(16), Spares(8))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Later(guardedAfter + time.Second)
	before, spare := s.Pods("train"), s.On("train-s0")
	nodes := []string{s.On("train-0"), s.On("train-1")}
	moved := func() (names []string) {
		for _, name := range []string{"train-0", "train-1"} {
			if is := s.Pods("train")[name]; is != nil && is.UID != before[name].UID && is.Spec.NodeName != "" {
				names = append(names, name)
			}
		}
		return names
	}
	s.Emptied("train", func() error {
		if len(moved()) != 1 || s.Run("train").Status.Width.Allocated != 16 {
			return fmt.Errorf("%v have moved", moved())
		}
		return s.waits("train", "neither a spare nor free GPUs")
	}, nodes...)
	s.Same("where the rank has moved to", spare, s.On(moved()[0]))
	other := map[string]string{"train-0": "train-1", "train-1": "train-0"}[moved()[0]]
	s.Later(2 * redrain)
	s.Same("the other one is evicted", false, s.EvictPod(other))
	s.Node("d0-9", "d0")
	s.Emptied("train", func() error {
		for _, name := range []string{"train-0", "train-1"} {
			if on := s.On(name); on != "d0-9" && on != spare {
				return fmt.Errorf("%s is on %q", name, on)
			}
		}
		return nil
	}, nodes...)
	s.ChangeNode(nodes[0], GivenBack)
	s.Sits("train-s0", nodes[0])
	s.ChangeNode(nodes[1], GivenBack)
	s.Says("train", rqv1.RunRunning)
}

// twoDrainsCalledOff has two nodes of a Run be emptied at once, and both uncordoned while the first rank moves: that
// one goes on where its place was set aside, the other stays.
func twoDrainsCalledOff(s *Teller) {
	s.guarded(Takes(time.Minute, 10*time.Second))
	s.Later(guardedAfter + time.Second)
	before := s.Pods("train")
	nodes := []string{s.On("train-0"), s.On("train-1")}
	moves := ""
	s.Emptied("train", func() error {
		for _, name := range []string{"train-0", "train-1"} {
			if is := s.Pods("train")[name]; is == nil || is.UID != before[name].UID || is.DeletionTimestamp != nil {
				moves = name
				return nil
			}
		}
		return fmt.Errorf("no rank moves")
	}, nodes...)
	for _, node := range nodes {
		s.ChangeNode(node, GivenBack)
	}
	s.Until("the Run is to be whole again, with a spare", func() error {
		run := s.Run("train")
		if run.Status.Width.Allocated != 16 || run.Status.Ready != 2 || s.On("train-s0") == "" ||
			s.Pods("train")[moves] == nil || s.Pods("train")[moves].UID == before[moves].UID {
			return fmt.Errorf("%+v", run.Status)
		}
		return nil
	})
	s.Sound()
	for _, name := range []string{"train-0", "train-1"} {
		s.Same(name+" has moved", name == moves, s.Pods("train")[name].UID != before[name].UID)
	}
	s.Later(redrain)
	s.Same("it is evicted", false, s.EvictPod("train-0"))
	s.Submit("next", 8, InPods(8))
	s.Says("next", rqv1.RunRunning, "bound 8 GPUs")
}

// redrain is how long it takes at most until nobody may evict a rank any more whose drain is over.
const redrain = 5 * time.Second

// drainWaitsForCPU has a node be emptied of a rank for which the only other node has no CPU: it is not evicted, and it
// is said why. It moves once there is CPU.
func drainWaitsForCPU(s *Teller) {
	s.Nodes("d0", 1)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 8, InPods(8), wanting(4))
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	s.Later(guardedAfter + time.Second)
	before := s.Pods("train")["train-0"]
	s.Node("d0-9", "d0")
	s.crowd("d0-9")
	s.Emptied("train", func() error { return s.waits("train", "on nodes that these pods may not use") }, "d0-0")
	now := s.Pods("train")["train-0"]
	s.Same("the rank", before.UID, now.UID)
	s.Same("it is told to go", false, now.DeletionTimestamp != nil)
	s.DeletePod("crowd-d0-9")
	s.Emptied("train", func() error { return differs("d0-9", s.On("train-0")) }, "d0-0")
	s.ChangeNode("d0-0", GivenBack)
	s.Says("train", rqv1.RunRunning)
}
