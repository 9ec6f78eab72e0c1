package book

import "k8s.io/apimachinery/pkg/types"

// untaken are the pods by node that others than this scheduler have put there and that no kubelet has taken yet.
type untaken map[string]map[types.UID]bool

// note notes whether a pod of a node waits for the kubelet.
func (u untaken) note(node string, pod types.UID, waits bool) {
	if !waits {
		delete(u[node], pod)
		if len(u[node]) == 0 {
			delete(u, node)
		}
		return
	}
	if u[node] == nil {
		u[node] = map[types.UID]bool{}
	}
	u[node][pod] = true
}

// withoutUntaken has the fleet not count the pods that others have put on a node and that its kubelet has not taken,
// until what it returns is called: it turns them away where shards have what they ask for.
func (s *seating) withoutUntaken(node string) (undo func()) {
	count := func(by int) {
		for pod := range s.untaken[node] {
			if h := s.held[pod]; h != nil && h.node == node && !h.shard {
				s.fleet.Hold(node, by*h.gpus, h.beside)
			} else if s.bystanders[pod].node == node {
				s.fleet.Burden(node, s.bystanders[pod].beside, by)
			}
		}
	}
	count(-1)
	return func() { count(+1) }
}
