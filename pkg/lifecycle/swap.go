package lifecycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// claim notes which spares make room for which ranks, as the ranks' pods record it.
func (s *state) claim() {
	s.claims = map[types.UID]*corev1.Pod{}
	for _, pod := range slices.Concat(s.pods, s.beyond) {
		if pod == nil {
			continue
		}
		if r, ok := rank.ReplacementOf(pod); ok && r.SpareUID != "" {
			s.claims[r.SpareUID] = pod
		}
	}
}

// swapping reports whether a rank's pod waits for the spare that it records to make room.
func (s *state) swapping(pod *corev1.Pod) bool {
	r, ok := rank.ReplacementOf(pod)
	return ok && r.SpareUID != "" && alive(pod) && pod.Spec.NodeName == "" && (s.byUID[r.SpareUID] != nil || s.leases[r.SpareUID] != nil)
}

// relieve finds a spare for every rank that was lost with its node, and for every one that has found no room (R26). A rank
// whose pod is there already, and waits in vain, is made anew with the record of its spare. A cohort under way has no ranks
// yet that could be lost: it is completed, or given up.
func (s *state) relieve() {
	s.relief = map[int]rank.Replacement{}
	if s.Run.Status.Phase != rqv1.RunRunning || s.Shape != nil || s.cut != nil {
		return
	}
	short := s.short()
	for index, pod := range s.core() {
		r, lost := rank.Replacement{}, false
		switch {
		case pod == nil:
			r, lost = s.lostRank(index)
		case pod.Spec.NodeName != "" || !alive(pod) || s.leases[pod.UID] != nil || s.swapping(pod):
			continue
		}
		if spare := s.standBySpare(index); spare != nil && (lost || short) {
			r.Spare, r.SpareUID, r.Node = spare.Name, spare.UID, spare.Spec.NodeName
		}
		if lost || r.Spare != "" {
			s.relief[index] = r
		}
	}
}

// lostRank returns the record of a rank whose pod is gone with its node, and whose Lease is still open.
func (s *state) lostRank(index int) (rank.Replacement, bool) {
	for _, lease := range s.Leases {
		node := lease.Node()
		if lease.Spec.RunRef.UID != s.Run.UID || rank.Held(lease) != (rank.Part{Index: index}) || s.Stands(node) {
			continue
		}
		return rank.Replacement{Lost: node}, true
	}
	return rank.Replacement{}, false
}

// standBySpare returns the first spare of a rank's group that could make room for it now, and makes room for no other; nil
// when there is none.
func (s *state) standBySpare(active int) *corev1.Pod {
	if s.Demand.SparesPerGroup == 0 {
		return nil
	}
	for index, pod := range s.spares {
		if s.Demand.Group(rank.Part{Index: index, Spare: true}) != s.Demand.GroupOf(active) || !alive(pod) || !s.runs(pod) || s.claims[pod.UID] != nil ||
			s.doomed(pod) || !s.Accepts(pod.Spec.NodeName) {
			continue
		}
		taken := false
		for _, r := range s.relief {
			taken = taken || r.SpareUID == pod.UID
		}
		if !taken {
			return pod
		}
	}
	return nil
}

// short reports whether the missing ranks of a Run that runs were refused room or money, at the width that it has from now
// on: of another width the book says nothing yet. A rank that no node accepts has no room.
func (s *state) short() bool {
	return s.Refusal != nil && !s.Refusal.Spare && !s.Refusal.Grow && s.Refusal.Reason != plan.NotYet && s.planned == s.widest()
}

// inVain reports whether a rank's pod has waited for a node long enough. Where other scheduling rules turned nodes down, they
// are asked once more before the Run gives anything up: their causes may pass without an event.
func (s *state) inVain(pod *corev1.Pod) bool {
	return pod != nil && pod.Spec.NodeName == "" && (s.Refusal.Rejected == nil || s.Now.Sub(pod.CreationTimestamp.Time) >= retryRejected)
}

// unreplaceable reports whether a rank of a Run that runs is lost for good: there is no room for another pod, no spare to make
// some, and no width at which the Run could go on (R27).
func (s *state) unreplaceable() bool {
	return s.stuck()
}

// stuck reports whether a rank finds no room and no spare.
func (s *state) stuck() bool {
	return s.Run.Status.Phase == rqv1.RunRunning && s.short() && !slices.ContainsFunc(s.core(), func(pod *corev1.Pod) bool { return pod != nil && s.swapping(pod) }) &&
		!slices.ContainsFunc(s.spared(), func(r rank.Replacement) bool { return r.Spare != "" }) &&
		slices.ContainsFunc(s.core(), s.inVain)
}

// spared returns the replacements that are about to be made.
func (s *state) spared() []rank.Replacement {
	var out []rank.Replacement
	for index := range s.pods {
		if r, ok := s.relief[index]; ok {
			out = append(out, r)
		}
	}
	return out
}

// narrow gives up steps of a Run that has lost ranks and has neither room nor spares for them, if it can go on narrower (R27).
func (s *state) narrow() {
	if s.Narrower > 0 && s.Narrower < s.granted && s.cut == nil && s.Shape == nil && s.stuck() {
		s.granted = s.Narrower
		s.Demand = s.Demand.At(int(s.granted) / s.Demand.GPUsPerPod)
		s.sort()
	}
}

// stranded adds pods that nobody is there to end to those that are deleted: what runs or terminates on a lost node, whatever
// the Run has come to.
func (s *state) stranded(deletions []Deletion) []Deletion {
	known := map[types.UID]bool{}
	for i := range deletions {
		known[deletions[i].Pod.UID] = true
	}
	for _, pod := range s.Pods {
		node := pod.Spec.NodeName
		if _, ours := s.runOf(pod); !ours || known[pod.UID] || node == "" || s.Stands(node) || !holds(pod) && present(pod) {
			continue
		}
		deletions = append(deletions, Deletion{Pod: pod, If: NodeLost, Node: node})
	}
	return deletions
}

// recent is how long before the last of them replacements count as one event.
const recent = 10 * time.Second

// swapped says which groups have been swapped to spares most recently; empty when none has.
func (s *state) swapped() string {
	var last time.Time
	at := map[int]time.Time{}
	for index, pod := range s.pods {
		if pod == nil || pod.Spec.NodeName == "" {
			continue
		}
		if r, ok := rank.ReplacementOf(pod); ok && r.Spare != "" && r.Lost != "" {
			group, made := s.Demand.GroupOf(index), pod.CreationTimestamp.Time
			if made.After(at[group]) || at[group].IsZero() {
				at[group] = made
			}
			if made.After(last) {
				last = made
			}
		}
	}
	var groups []string
	for group := range s.Demand.Groups {
		if made, ok := at[group]; ok && !made.Add(recent).Before(last) {
			groups = append(groups, strconv.Itoa(group))
		}
	}
	switch len(groups) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("group %s swapped to spare after node failure", groups[0])
	}
	return fmt.Sprintf("groups %s swapped to spares after node failure", strings.Join(groups, ", "))
}
