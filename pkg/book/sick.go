package book

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/ending"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// sick are the pods of which their kubelets say that a device is broken (R25).
type sick struct {
	args   *config.Args
	nodes  *nodeTable
	roster *roster
	mail   *mailbox

	on map[types.UID]string // the nodes that they are on
	// held says that there are such pods on too many nodes at once: it is rather a driver that fails than so many devices.
	held bool
}

// note notes whether a device of a pod is broken.
func (s *sick) note(m *member) {
	_, broken := ending.Unhealthy(m.pod)
	if !broken || m.pod.Spec.NodeName == "" || rank.Ended(m.pod) {
		s.drop(m.pod.UID)
		return
	}
	if _, known := s.on[m.pod.UID]; !known {
		s.on[m.pod.UID] = m.pod.Spec.NodeName
		s.weigh()
	}
}

// drop forgets a pod.
func (s *sick) drop(pod types.UID) {
	if _, known := s.on[pod]; known {
		delete(s.on, pod)
		s.weigh()
	}
}

// weigh holds such pods back from being moved while they are on more nodes than may show a sign at once, and has their
// Runs looked at once they are not.
func (s *sick) weigh() {
	on, pods := map[string]bool{}, make([]types.UID, 0, len(s.on))
	for pod, node := range s.on {
		on[node], pods = true, append(pods, pod)
	}
	was := s.held
	s.held = len(on) > s.args.NodesAtOnce(s.nodes.withGPUs())
	if s.held == was {
		return
	}
	slices.Sort(pods)
	for _, pod := range pods {
		if m := s.roster.members[pod]; m != nil && m.gang.run != nil {
			s.mail.reconcile(keyOf(m.gang.run), lane.Cut)
		}
	}
}

// withGPUs returns how many nodes with GPUs there are.
func (t *nodeTable) withGPUs() (n int) {
	for _, sizes := range t.sizes {
		for size, nodes := range sizes {
			if size.gpus > 0 {
				n += nodes
			}
		}
	}
	return n
}

// lookAtDevices notes whether a device of a pod is broken.
func (s *sick) lookAtDevices(l *Look, pod types.UID) {
	switch _, broken := s.on[pod]; {
	case broken && s.held:
		l.DevicesHeld = true
	case broken:
		l.Broken[pod] = true
	}
}
