package story

import (
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// signStories are of signs of trouble on nodes, which come and go, and of who gives such nodes back.
func signStories() []Story {
	return []Story{
		{Name: "nvsentinel-cordons-first", Play: func(s *Teller) { nvsentinel(s, true, false) }},
		{Name: "nvsentinel-finds-it-cordoned", Play: func(s *Teller) { nvsentinel(s, false, false) }},
		{Name: "nvsentinel-uncordons-either-way", Play: func(s *Teller) { nvsentinel(s, false, true) }},
		{Name: "sign-is-gone", Play: signIsGone},
		{Name: "cordoned-before-its-sign", Play: func(s *Teller) {
			othersCordon(s, func(node string) { s.ChangeNode(node, Cordoned) }, func(string) {})
		}},
		{Name: "cordoned-anew-after-its-sign", Alone: "the scheduler is killed", Play: func(s *Teller) {
			othersCordon(s, func(string) {}, func(node string) {
				s.Kill(func() {
					s.ChangeNode(node, uncordoned)
					s.ChangeNode(node, Cordoned)
					s.ChangeNode(node, Shows(fellOff, corev1.ConditionFalse))
				})
			})
		}},
		{Name: "lost-by-word-after-its-sign", Play: func(s *Teller) {
			othersCordon(s, func(string) {}, func(node string) { s.ChangeNode(node, s.lostByWord("mine")) })
		}},
		{Name: "signs-of-maintenance", Play: signsOfMaintenance},
		{Name: "ranks-leave-before-maintenance", Args: map[string]any{"noticePeriod": "5s"},
			Forgets: "which place was meant for the second rank: a new spare stands there first",
			Play:    ranksLeaveBeforeMaintenance},
	}
}

const (
	// fellOff is a condition of NVSentinel's, which counts without any configuration.
	fellOff = "SysLogsGPUFallenOff"
	// The annotations that NVSentinel leaves on a node while it has it in quarantine. The last one says that it found the
	// node cordoned, and will leave it so.
	quarantined, quarantineCordons = "quarantineHealthEvent", "quarantineHealthEventIsCordoned"
	quarantineFound                = "quarantineHealthEventCordonPreExisting"
)

// uncordoned has somebody have new pods come to a node.
func uncordoned(n *corev1.Node) { n.Spec.Unschedulable = false }

// quarantine is what NVSentinel does to a node at the start of a quarantine: it cordons the node if nobody has, and
// says so.
func quarantine(n *corev1.Node) {
	Annotated(quarantined, `[{"checkName":"SysLogsGPUFallenOff"}]`)(n)
	Annotated(quarantineCordons, "True")(n)
	if n.Spec.Unschedulable {
		Annotated(quarantineFound, "True")(n)
	}
	n.Spec.Unschedulable = true
}

// unquarantine is what it does at the end. Versions that do not note who was first uncordon the node in any case.
func unquarantine(anyCordon bool) NodeChange {
	return func(n *corev1.Node) {
		if n.Annotations[quarantineFound] == "" || anyCordon {
			n.Spec.Unschedulable = false
		}
		for _, key := range []string{quarantined, quarantineCordons, quarantineFound} {
			delete(n.Annotations, key)
		}
	}
}

// lostByWord is what "kubectl runs nodes lost" writes on a node.
func (s *Teller) lostByWord(why string) NodeChange {
	return func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		Annotated(rqv1.AnnotationLost, nodeloss.Record(nodeloss.Verdict{Reason: nodeloss.Administrator, Message: why},
			s.Now()))(n)
		delete(n.Annotations, rqv1.AnnotationCordoned)
	}
}

// heartbeat is the kubelet's lease of a node.
func (s *Teller) heartbeat(node string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: s.full(node)}}
}

// Silence has the kubelet of a node not be heard any more: somebody who does not renew it holds its lease. Hear has it
// be heard again.
func (s *Teller) Silence(node string) {
	s.T.Helper()
	lease, nobody, hours := s.heartbeat(node), "nobody", int32(36000)
	s.must(s.Change(lease, func() { lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &nobody, &hours }))
}

// Hear has the kubelet of a node be heard again.
func (s *Teller) Hear(node string) {
	s.T.Helper()
	s.must(s.Delete(s.heartbeat(node)))
}

// lost is an error unless a node is recorded as lost, for a reason that holds a text, and cordoned.
func (s *Teller) lost(node, text string) error {
	return Recorded(s.IsNode(node), text)
}

// back is an error unless nothing tells any more that a node was lost.
func (s *Teller) back(node string) error {
	return Unrecorded(s.IsNode(node))
}

// broken starts a Run with a spare on four nodes, has the node of one of its ranks break, by what strike does, and
// returns the node once the rank is where the spare was and the spare elsewhere. Nothing is left on the node, and a
// Run that needs one has to wait for it.
func (s *Teller) broken(strike func(node string)) string {
	s.T.Helper()
	s.guarded()
	before, node, spare := s.Pods("train"), s.On("train-1"), s.On("train-s0")
	strike(node)
	s.Says("train", rqv1.RunRunning, "group 0 swapped to spare after node failure")
	s.Remade("train", before, "train-1", "train-s0")
	s.Same("where the rank is", spare, s.On("train-1"))
	s.Same("its epoch", "1", s.Pods("train")["train-1"].Labels[rqv1.LabelEpoch])
	s.Ledger("train", Leases{Open: 3, "NodeFailure": 1, "Swap": 1})
	s.Until("the node's record", func() error { return s.lost(node, "condition "+fellOff+" is True") })
	s.Told("Node", node, "Lost", "condition "+fellOff+" is True")
	s.Until("there is to be nothing to drain", func() error {
		for _, pod := range s.World().Pods {
			if s.short(pod.Spec.NodeName) == node {
				return fmt.Errorf("%s is there", pod.Name)
			}
		}
		return nil
	})
	s.Submit("next", 8, InPods(8))
	s.Says("next", rqv1.RunPending, "short by")
	return node
}

// staysLost asserts that nothing is done about a node for longer than a sign has to be gone.
func (s *Teller) staysLost(node string) {
	s.T.Helper()
	s.Never(8*time.Second, "the node is somebody else's", func() error { return s.lost(node, "") })
	s.Says("next", rqv1.RunPending, "short by")
}

// used waits until the Run that waits for a node runs there.
func (s *Teller) used(node string) {
	s.T.Helper()
	s.Says("next", rqv1.RunRunning, "bound 8 GPUs")
	s.Same("where the Run is that waited", node, s.On("next-0"))
	s.Until("the node is to be as any other", func() error { return s.back(node) })
}

// nvsentinel is what NVSentinel does to a node with a rank on it: its condition, the cordon, the drain, the repair,
// and the way back. The rank is swapped at once; the node is used again when NVSentinel lets go of it, whether it
// was the first to cordon it or not.
func nvsentinel(s *Teller, first, anyCordon bool) {
	node := s.broken(func(node string) {
		if first {
			s.ChangeNode(node, quarantine)
		}
		s.ChangeNode(node, Shows(fellOff, corev1.ConditionTrue))
	})
	if !first {
		s.ChangeNode(node, quarantine)
	}
	s.Silence(node) // it is restarted
	s.Hear(node)
	s.ChangeNode(node, Shows(fellOff, corev1.ConditionFalse))
	s.staysLost(node)
	s.ChangeNode(node, unquarantine(anyCordon))
	s.used(node)
}

// signIsGone has nobody but the scheduler cordon a node that breaks: it is used again without anybody's help.
func signIsGone(s *Teller) {
	node := s.broken(func(node string) { s.ChangeNode(node, Shows(fellOff, corev1.ConditionTrue)) })
	s.staysLost(node)
	s.ChangeNode(node, Shows(fellOff, corev1.ConditionFalse))
	s.used(node)
	s.Told("Node", node, "GivenBack", "the sign of its loss is gone")
}

// othersCordon has people cordon a node that breaks and is repaired: before, or anew after the scheduler did, while
// nobody looks. Or they say that it is lost. The node is theirs until they uncordon it.
func othersCordon(s *Teller, before, after func(node string)) {
	node := s.broken(func(node string) {
		before(node)
		s.ChangeNode(node, Shows(fellOff, corev1.ConditionTrue))
	})
	after(node)
	s.ChangeNode(node, Shows(fellOff, corev1.ConditionFalse))
	s.staysLost(node)
	s.ChangeNode(node, uncordoned)
	s.used(node)
}

// ahead is an error unless a Run says of maintenance ahead what it should: nothing true if that is empty.
func (s *Teller) ahead(run, says string) error {
	c := meta.FindStatusCondition(s.Run(run).Status.Conditions, rqv1.ConditionMaintenanceAhead)
	is := c != nil && c.Status == metav1.ConditionTrue
	if is != (says != "") || is && !strings.Contains(s.short(c.Message), says) {
		return fmt.Errorf("its condition is %+v, want %q", c, says)
	}
	return nil
}

// signsOfMaintenance has nothing new come to a node whose conditions tell of maintenance without a date, as long as
// they do. What annotations say that nobody understands is told on the node, and counts for nothing.
func signsOfMaintenance(s *Teller) {
	s.Nodes("d0", 1)
	s.Fund("", Envelope("all", 100))
	for i, kind := range []corev1.NodeConditionType{"CSPMaintenance", corev1.NodeMaintenancePlanned,
		corev1.NodeDrainInProgress} {
		s.ChangeNode("d0-0", Shows(kind, corev1.ConditionTrue))
		run := fmt.Sprintf("run-%d", i)
		s.Submit(run, 8)
		s.Says(run, rqv1.RunPending, "short by 8")
		s.ChangeNode("d0-0", Shows(kind, corev1.ConditionFalse))
		s.Says(run, rqv1.RunRunning, "bound 8 GPUs")
		s.ChangeNode("d0-0", Shows(kind, corev1.ConditionTrue))
		s.Until("its owner is to see it", func() error { return s.ahead(run, "condition "+string(kind)) })
		s.ChangeNode("d0-0", Shows(kind, corev1.ConditionFalse))
		s.Until("its owner is to see that it is over", func() error { return s.ahead(run, "") })
		s.Remove(run)
		s.Gone(run)
	}
	s.ChangeNode("d0-0", Annotated(rqv1.AnnotationMaintenanceStart, "tomorrow"))
	s.Told("Node", "d0-0", "MaintenanceIgnored", "write it as 2030-01-02T15:00:00Z")
	s.Submit("anyway", 8)
	s.Says("anyway", rqv1.RunRunning, "bound 8 GPUs")
}

// maintained announces maintenance of a node for an hour.
func maintained(from time.Time) NodeChange {
	return func(n *corev1.Node) {
		Annotated(rqv1.AnnotationMaintenanceStart, from.UTC().Format(time.RFC3339))(n)
		Annotated(rqv1.AnnotationMaintenanceEnd, from.Add(time.Hour).UTC().Format(time.RFC3339))(n)
	}
}

// ranksLeaveBeforeMaintenance announces maintenance of the nodes of a Run's ranks, and of another Run's that has
// nowhere to go. The former have left shortly before it starts, one for the spare and one for a free node, and nobody
// else was touched for it; the latter stays, and its owner and the node say so.
func ranksLeaveBeforeMaintenance(s *Teller) {
	s.Nodes("d0", 5)
	s.Fund("", Envelope("all", 100))
	s.Fund("others", Envelope("all", 100, unshared))
	s.Submit("train", 16, InPods(8), InGroups(16), Spares(8))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Submit("other", 8, InPods(8), s.By("others"))
	s.Says("other", rqv1.RunRunning, "bound 8 GPUs")
	s.Node("d1-0", "d1")
	s.Submit("stuck", 8, InPods(8), InGroups(8), s.InDomain("d1"))
	s.Says("stuck", rqv1.RunRunning, "bound 8 GPUs")
	rack := []string{s.On("train-0"), s.On("train-1"), s.On("stuck-0")}
	others, start := s.Traces("other", "stuck"), s.In(40*time.Second).Time
	for _, node := range rack {
		s.ChangeNode(node, maintained(start))
	}
	s.Until("both ranks are to have left the rack", func() error {
		for _, name := range []string{"train-0", "train-1"} {
			if on := s.On(name); on == "" || on == rack[0] || on == rack[1] {
				return fmt.Errorf("%s is on %q", name, on)
			}
		}
		return nil
	})
	if early := start.Sub(s.Now()); early > 11*time.Second || early < 0 {
		s.Errorf("they had left %s before it starts, want 10 seconds or fewer", early)
	}
	s.Says("train", rqv1.RunRunning, "group 0 swapped to spare before maintenance of node ")
	s.Ledger("train", Leases{Open: 2, "Maintenance": 2, "Swap": 1})
	s.Opened("train", map[rqv1.LeaseReason]int{rqv1.ReasonSwap: 2})
	for _, l := range s.World().LeasesOf("train") {
		if l.Status.Ended != nil && l.Status.Ended.After(start) {
			s.Errorf("Lease %s has ended at %s, after the maintenance has begun at %s", l.Name, l.Status.Ended, start)
		}
	}
	s.Same("the others", others, s.Traces("other", "stuck"))
	s.Until("its owner is to see that the other stays", func() error {
		return s.ahead("stuck", "ranks on "+rack[2]+" stay there until their nodes go out of service: rank 0 on node "+
			rack[2])
	})
	s.Told("Node", rack[2], "RanksStay", "neither a spare nor")
	s.Says("stuck", rqv1.RunRunning, "bound 8 GPUs")
}
