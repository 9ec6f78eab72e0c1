package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// sightings are what a watch has seen: when nodes were lost, when each Run first ran, the pod that each rank runs in,
// and what was wrong with it.
type sightings struct {
	mutex sync.Mutex
	lost  map[string][]time.Time
	began map[types.UID]time.Time
	ranks map[string]types.UID
	wrong []string
}

// longestNews is how long a watch may take to tell of a node that is lost, on a busy machine.
const longestNews = 5 * time.Second

// observe watches until the test ends.
func (s *site) observe() *sightings {
	s.t.Helper()
	seen := &sightings{lost: map[string][]time.Time{}, began: map[types.UID]time.Time{}, ranks: map[string]types.UID{}}
	watch := func(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) {
		if _, err := informer.AddEventHandler(handler); err != nil {
			s.t.Fatal(err)
		}
		go informer.RunWithContext(s.t.Context())
		cache.WaitForCacheSync(s.t.Context().Done(), informer.HasSynced)
	}
	watch(cache.NewSharedIndexInformer(listWatch(s.api, &corev1.NodeList{}), &corev1.Node{}, 0, nil),
		cache.ResourceEventHandlerFuncs{
			AddFunc: func(n any) { seen.node(n.(*corev1.Node), false) }, UpdateFunc: func(_, n any) {
				seen.node(n.(*corev1.Node), false)
			},
			DeleteFunc: func(n any) {
				if node, ok := n.(*corev1.Node); ok {
					seen.node(node, true)
				}
			},
		})
	watch(cache.NewSharedIndexInformer(listWatch(s.api, &corev1.PodList{}), &corev1.Pod{}, 0, nil),
		cache.ResourceEventHandlerFuncs{
			AddFunc: func(p any) { seen.pod(p.(*corev1.Pod), false) },
			UpdateFunc: func(old, p any) {
				if was := old.(*corev1.Pod); was.UID != p.(*corev1.Pod).UID {
					seen.pod(was, true)
				}
				seen.pod(p.(*corev1.Pod), false)
			},
			DeleteFunc: func(p any) {
				if pod, ok := p.(*corev1.Pod); ok {
					seen.pod(pod, true)
				}
			},
		})
	watch(cache.NewSharedIndexInformer(listWatch(s.api, &rqv1.RunList{}), &rqv1.Run{}, 0, nil),
		cache.ResourceEventHandlerFuncs{
			AddFunc: func(r any) { seen.run(r.(*rqv1.Run)) }, UpdateFunc: func(_, r any) { seen.run(r.(*rqv1.Run)) },
		})
	return seen
}

func (seen *sightings) node(node *corev1.Node, gone bool) {
	seen.mutex.Lock()
	defer seen.mutex.Unlock()
	_, _, evident := nodeloss.Rules{Conditions: []string{brokenGPU}}.Evident(node)
	if _, recorded := nodeloss.Recorded(node); gone || evident || recorded {
		seen.lost[node.Name] = append(seen.lost[node.Name], time.Now())
	}
}

// lostUnder reports whether the node of a Lease was lost while it was open, as exactly as a watch tells.
func (seen *sightings) lostUnder(lease *rqv1.Lease) bool {
	return slices.ContainsFunc(seen.lost[lease.Node()], func(at time.Time) bool {
		return at.After(lease.Spec.Start.Time) &&
			(lease.Status.Ended == nil || at.Before(lease.Status.Ended.Add(longestNews)))
	})
}

func (seen *sightings) run(run *rqv1.Run) {
	seen.mutex.Lock()
	defer seen.mutex.Unlock()
	if run.Status.Phase == rqv1.RunRunning && seen.began[run.UID].IsZero() {
		seen.began[run.UID] = time.Now()
	}
}

// pod notes in which pod a rank runs: never in two at once.
func (seen *sightings) pod(pod *corev1.Pod, gone bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || pod.Labels[rqv1.LabelRun] == "" || pod.Spec.NodeName == "" {
		return
	}
	seen.mutex.Lock()
	defer seen.mutex.Unlock()
	rank := fmt.Sprintf("%s %s of Run %s (%s)", pod.Labels[rqv1.LabelRole], pod.Labels[rqv1.LabelIndex],
		pod.Labels[rqv1.LabelRun], owner.UID)
	switch other, runs := seen.ranks[rank]; {
	case gone || ended(pod):
		if other == pod.UID {
			delete(seen.ranks, rank)
		}
	case runs && other != pod.UID:
		seen.wrong = append(seen.wrong, fmt.Sprintf("%s runs twice: in pods %s and %s", rank, other, pod.UID))
	default:
		seen.ranks[rank] = pod.UID
	}
}

// broken returns what was wrong so far.
func (seen *sightings) broken() []string {
	seen.mutex.Lock()
	defer seen.mutex.Unlock()
	return slices.Clone(seen.wrong)
}

// abandoned finds open Leases on nodes that are lost.
func (s *site) abandoned() error {
	w, err := s.look(s.t.Context())
	if err != nil {
		return err
	}
	for i := range w.leases {
		name := w.leases[i].Spec.Slice.Nodes[0].Name
		node, there := w.nodes[name]
		if _, recorded := nodeloss.Recorded(&node); !w.leases[i].Status.Closed && (!there || recorded) {
			return fmt.Errorf("Lease %s is open on %s, which is lost", w.leases[i].Name, name)
		}
	}
	return nil
}

// judge tells, once all is over, which ranks held GPUs twice at a time by the ledger, which Leases ended for the loss
// of a node that stood, and which Runs were hurt that had lost no node and that nothing had cut.
func (seen *sightings) judge(s *site, removed map[string]bool) []string {
	w, err := s.look(context.Background())
	if err != nil {
		return []string{err.Error()}
	}
	seen.mutex.Lock()
	defer seen.mutex.Unlock()
	out := slices.Concat(seen.wrong, w.twice())
	touched, dropped := map[types.UID]bool{}, map[types.UID]bool{}
	for i := range w.reservations {
		for _, cut := range w.reservations[i].Status.Cuts {
			touched[cut.UID] = true
			dropped[cut.UID] = dropped[cut.UID] || cut.Action == rqv1.CutDropSpare
		}
	}
	for i := range w.leases {
		lease := &w.leases[i]
		lost := seen.lostUnder(lease)
		touched[lease.Spec.RunRef.UID] = touched[lease.Spec.RunRef.UID] || lost || removed[lease.Spec.RunRef.Name] ||
			lease.Spec.Slice.Role == rqv1.RoleBorrowed
		if lease.Status.ClosureReason == rqv1.ClosedNodeFailure && !lost {
			out = append(out, fmt.Sprintf("Lease %s ended as NodeFailure, and its node %s was never lost", lease.Name,
				lease.Node()))
		}
		// A scheduler that dies between ending pods and closing their Leases leaves it to the next to find out why they
		// ended. A node that has been healed meanwhile does not tell any more, nor does a Reservation that is over which
		// spares it had dropped, nor a gang that has started for which shards made room.
		told := lost || lease.Spec.Slice.Role == rqv1.RoleSpare && dropped[lease.Spec.RunRef.UID] ||
			lease.Spec.Slice.Role == rqv1.RoleBorrowed
		if lease.Status.ClosureReason == rqv1.ClosedDeleted && !removed[lease.Spec.RunRef.Name] && !told {
			out = append(out, fmt.Sprintf("Lease %s (%s on %s, from %s to %s) ended as Deleted, and nobody has deleted its Run "+
				"or its pod", lease.Name, lease.Spec.Reason, lease.Node(), lease.Spec.Start, lease.Status.Ended))
		}
	}
	healthy := 0
	for i := range w.leases {
		lease := &w.leases[i]
		if touched[lease.Spec.RunRef.UID] {
			continue
		}
		healthy++
		began := seen.began[lease.Spec.RunRef.UID]
		switch reason := lease.Status.ClosureReason; {
		case reason == "", reason == rqv1.ClosedShrink:
		case reason == rqv1.ClosedUnwound && (began.IsZero() || lease.Status.Ended.Time.Before(began)):
		default:
			out = append(out, fmt.Sprintf("Run %s lost no node and was not cut, and its Lease %s ended as %s",
				lease.Spec.RunRef.Name, lease.Name, reason))
		}
	}
	s.t.Logf("%d Leases are of Runs that lost no node", healthy)
	return out
}

// twice finds ranks that held GPUs by two Leases at an instant.
func (w *world) twice() []string {
	ranks := map[string][]*rqv1.Lease{}
	for i := range w.leases {
		l := &w.leases[i]
		rank := fmt.Sprintf("%s %s of Run %s (%s)", l.Spec.Slice.Role, l.Labels[rqv1.LabelIndex], l.Spec.RunRef.Name,
			l.Spec.RunRef.UID)
		ranks[rank] = append(ranks[rank], l)
	}
	var out []string
	for _, rank := range slices.Sorted(maps.Keys(ranks)) {
		leases := ranks[rank]
		slices.SortFunc(leases, func(x, y *rqv1.Lease) int { return x.Spec.Start.Compare(y.Spec.Start.Time) })
		for i := range leases[1:] {
			if before, after := leases[i], leases[i+1]; before.Status.Ended == nil ||
				before.Status.Ended.After(after.Spec.Start.Time) {
				out = append(out, fmt.Sprintf("%s held GPUs by Leases %s and %s at once: %+v, then %+v until %+v", rank,
					before.Name, after.Name,
					before.Status, after.Spec.Start, after.Status))
			}
		}
	}
	return out
}

// outcome counts what the Leases of a site were opened and closed for, and its activations.
func (s *site) outcome() string {
	w, err := s.look(context.Background())
	if err != nil {
		return err.Error()
	}
	opened, closed, phases, activations := map[rqv1.LeaseReason]int{}, map[rqv1.ClosureReason]int{},
		map[rqv1.RunPhase]int{}, 0
	for i := range w.leases {
		opened[w.leases[i].Spec.Reason]++
		closed[w.leases[i].Status.ClosureReason]++
	}
	for i := range w.reservations {
		if w.reservations[i].Status.ActivatedAt != nil {
			activations++
		}
	}
	for _, run := range w.runs {
		phases[run.Status.Phase]++
	}
	return fmt.Sprintf("Leases opened for %v and closed for %v; Runs %v; %d Reservations, %d activations", opened, closed,
		phases, len(w.reservations), activations)
}
