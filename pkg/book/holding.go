package book

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// holding is what one pod takes from a node, and who says so. The GPUs are free again once nobody does: a planned pod
// may be given up, a bound one holds until it is gone (R28), and an open Lease holds until it is closed (I1).
type holding struct {
	node string
	gpus int
	// beside is what it holds beside its GPUs.
	beside *topology.Amounts
	// planned by a gang's plan; leased: in the ledger; bound: the pod is there; vacant: kept for the pod's replacement.
	planned, leased, bound, vacant bool
	// asks says that other rules are asked about the rank that is to take a spare's place: it stands by until they accept.
	asks bool
	// writing is the Run for which it is perhaps in the ledger.
	writing types.UID
	// spare says that it is a spare's, and shard an opportunistic Run's: others run on the one, and are not kept from the
	// other.
	spare, shard bool
	// until is when the pod's grace period is over, once it has been told to go; asked is when a pod that gangs wait for,
	// and that has not been told, was first seen; stays says that it is a shard that does not go.
	until, asked time.Time
	stays        bool
	// vanished is what is known of the pod if it is gone while its containers may run, and endsBy until when the Lease
	// is open for those.
	vanished *Vanished
	endsBy   time.Time
	// run is the Run of a spare, and of a rank that takes one's place. The latter is seated until kube-scheduler counts
	// it.
	run    types.UID
	seated bool
	// left is the pod as it had been told to go, or as it went without, before its containers had ended; nil for none.
	left *corev1.Pod
	// awaitedBy are the gangs that wait for the GPUs.
	awaitedBy []*gang
}

// answer notes that it is known by now whether the Lease was written.
func (h *holding) answer() { h.writing = "" }

// unbind notes that the pod is there no more.
func (h *holding) unbind() { h.bound, h.planned, h.until = false, false, h.endsBy }

// close notes that its Lease is closed, and so that nothing of it runs any more whose pod is gone.
func (h *holding) close() {
	if !h.endsBy.IsZero() {
		h.until = time.Time{}
	}
	h.leased, h.vanished, h.endsBy = false, nil, time.Time{}
}

func (h *holding) claimed() bool {
	return h.planned || h.writing != "" || h.leased || h.bound || h.vacant
}

// idles reports whether nothing runs on what a spare holds. That ends when a rank is to take its place, and other rules
// accept it there.
func (h *holding) idles() bool { return h.spare && (!h.vacant || h.asks) }

// all returns what it holds.
func (h *holding) all() resolver.Holding {
	return resolver.Holding{Node: h.node, GPUs: h.gpus, Beside: h.beside}
}

// bystander is a pod that holds no GPUs, and something else of its node.
type bystander struct {
	node   string
	beside *topology.Amounts
}

// idlers are the spares that stand by, by node.
type idlers map[string]map[types.UID]bool

// note notes whether a spare stands by on a node.
func (i idlers) note(node string, spare types.UID, stands bool) {
	if stands && i[node] == nil {
		i[node] = map[types.UID]bool{}
	}
	if stands {
		i[node][spare] = true
	} else {
		delete(i[node], spare)
	}
	if len(i[node]) == 0 {
		delete(i, node)
	}
}
