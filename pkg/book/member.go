package book

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// Part is what a pod is in its Run: one of its active pods, or one of its spares, each counted from 0.
type Part struct {
	Index int
	Spare bool
}

// PodName returns the name of the pod that has a part in a Run: RUN-0, RUN-1, … for the active pods and RUN-s0, RUN-s1, …
// for the spares. Replacements keep it.
func (p Part) PodName(run string) string {
	if p.Spare {
		return run + "-s" + strconv.Itoa(p.Index)
	}
	return run + "-" + strconv.Itoa(p.Index)
}

// RoleOf returns the role of the Lease of a pod that has a part in a Run.
func RoleOf(spec *rqv1.RunSpec, p Part) rqv1.LeaseRole {
	switch {
	case spec.Opportunistic:
		return rqv1.RoleBorrowed
	case p.Spare:
		return rqv1.RoleSpare
	}
	return rqv1.RoleActive
}

// maxPods bounds the index of a pod: the API allows no Run more GPUs.
const maxPods = 1000000

// RunOf returns the UID of the Run that an object was made for; false for what no Run made. A pod's label says so, which only
// the scheduler writes: references are everybody's to change, and the garbage collector takes them away when the pods of a Run
// are to outlive it. Pods of before there was the label have the reference alone.
func RunOf(o metav1.Object) (types.UID, bool) {
	if uid := o.GetLabels()[LabelRunUID]; uid != "" {
		return types.UID(uid), true
	}
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.Kind != "Run" || owner.APIVersion != rqv1.GroupVersion.String() || owner.Name != o.GetLabels()[rqv1.LabelRun] {
		return "", false
	}
	return owner.UID, true
}

// Membership returns the Run that a pod belongs to and the pod's part in it; false for a pod that is not a Run's.
func Membership(pod *corev1.Pod) (run types.UID, part Part, ok bool) {
	run, ok = RunOf(pod)
	index, err := strconv.Atoi(pod.Labels[rqv1.LabelIndex])
	part = Part{Index: index, Spare: pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare)}
	if !ok || err != nil || index < 0 || index >= maxPods || pod.Name != part.PodName(pod.Labels[rqv1.LabelRun]) {
		return "", Part{}, false
	}
	return run, part, true
}

// stage is how far a pod has come.
type stage int

const (
	unplaced stage = iota
	assigned       // has a node and a payer
	reserved       // waits at the barrier, or has passed it
	writing        // its Lease may or may not be in the ledger by now
	leased         // its Lease is open in the ledger
	bound          // runs on its node
	finished       // succeeded or failed
)

// member is one pod of a gang.
type member struct {
	gang  *gang
	pod   *corev1.Pod
	part  Part
	stage stage
	node  string
	payer payer
	// leaving says that the pod has been told to go.
	leaving bool
	// awaited is the gang that the pod is cut for; nil when it is not.
	awaited *gang
	// unseen counts how often the scheduler's cache has lacked the node that the pod was given.
	unseen int
}

// placed reports whether the member has a node where it holds GPUs, or is going to.
func (m *member) placed() bool { return m.stage > unplaced && m.stage < finished }

// extra reports whether the member is a spare of a Run that has started, or a shard. It is placed by itself, when there is
// room: the Run goes on without it.
func (m *member) extra() bool { return m.part.Spare && m.gang.started() || m.gang.opportunistic() }

// joins reports whether the member belongs to the cohort that its gang grows by (R23).
func (m *member) joins() bool {
	return m.gang.growing() > 0 && !m.gang.settled().Has(plan.Missing{Index: m.part.Index, Spare: m.part.Spare})
}

// group returns the member's group.
func (m *member) group() int {
	if m.part.Spare {
		return m.gang.demand.GroupOfSpare(m.part.Index)
	}
	return m.gang.demand.GroupOf(m.part.Index)
}

// surplus reports whether the member is beyond the width that its gang has at the moment: it takes part in nothing.
func (m *member) surplus() bool {
	return m.gang.shape == nil && m.part.Index >= m.gang.squad(m.part).size
}

// squad is the pods of a gang that have one role.
type squad struct {
	// members by index; nil where the pod does not exist. present counts those that do, and no member below lowest is
	// unplaced.
	members         []*member
	present, lowest int
	// size is how many members take part, at the width that the gang has at the moment. The other counters leave those
	// with a higher index out.
	size int
	// within counts the members that exist, and leaving those that have been told to go and are not gone: the gang waits
	// for their replacements.
	within, leaving int
	// assigned counts members with a node, reserved those that have reached the barrier.
	assigned, reserved int
}

// between returns the members with an index from first to before end, as far as there are any.
func (s *squad) between(first, end int) []*member {
	end = min(end, len(s.members))
	return s.members[min(first, end):end]
}

// whole reports whether every member that takes part exists.
func (s *squad) whole() bool { return s.within == s.size && s.leaving == 0 }

// resize changes how many members take part.
func (s *squad) resize(size int) {
	s.size, s.within, s.leaving, s.assigned, s.reserved = size, 0, 0, 0, 0
	for _, m := range s.members {
		if m != nil {
			s.count(m, +1)
		}
	}
}

// first returns the unplaced member of lowest index that takes part; nil when all are placed.
func (s *squad) first() *member {
	for ; s.lowest < min(s.size, len(s.members)); s.lowest++ {
		if m := s.members[s.lowest]; m != nil && m.stage == unplaced && !m.leaving {
			return m
		}
	}
	return nil
}

func (s *squad) count(m *member, by int) {
	if m.part.Index >= s.size {
		return
	}
	s.within += by
	if m.leaving {
		s.leaving += by
	}
	if m.stage >= assigned {
		s.assigned += by
	}
	if m.stage >= reserved {
		s.reserved += by
	}
}
