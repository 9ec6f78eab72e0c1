package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// server is the API server of a cluster, on which decisions are carried out. Caches of Runs and Leases are never behind
// here, nor is that of pods but while its watch hangs, so that what decisions rest on is so.
type server struct{ *Cluster }

var _ reconcile.API = server{}

// Ask says yes, unless a pod was bound while the watch hung: nothing else is asked of which a cache is wrong.
func (s server) Ask(_ context.Context, questions []reconcile.Question) ([]bool, error) {
	answers := make([]bool, len(questions))
	for i := range questions {
		q := &questions[i]
		run := s.Runs[q.Run.Name]
		switch {
		case q.If == lifecycle.NodeLost && !s.Lost(q.Node):
			s.violated("I12: pods are deleted for node %s, which stands", q.Node)
		case q.If == lifecycle.RunGone && run != nil && run.UID == q.UID:
			s.violated("I12: pods are deleted for Run %s, which is there", q.Run)
		case q.If == lifecycle.Unpaid && !s.ended(q.Lease.Name):
			s.violated("I2: a pod is bound without the Lease %s", q.Lease)
		}
		answers[i] = q.If != lifecycle.NodeStands || !s.Lost(q.Node)
		if q.If == lifecycle.Unbound {
			pod := s.named(q.Pod.Name)
			answers[i] = pod == nil || pod.Spec.NodeName == ""
		}
	}
	return answers, nil
}

// ended reports whether the pod of a Lease has ended: it holds nothing, and needs none.
func (s server) ended(lease string) bool {
	for _, pod := range s.Pods {
		if rank.LeaseName(pod.Name, pod.UID) == lease {
			return rank.Ended(pod)
		}
	}
	return false
}

// Alive returns the pods that came while the watch hung: no Lease closes of another that holds GPUs.
func (s server) Alive(_ context.Context, _ types.NamespacedName, unseen []types.UID) (map[types.UID]bool, error) {
	alive := map[types.UID]bool{}
	for _, uid := range unseen {
		if _, late := s.untold[uid]; late {
			alive[uid] = s.Pods[uid] != nil
			continue
		}
		if pod := s.Pods[uid]; pod != nil && !rank.Ended(pod) {
			s.violated("I12: the Lease of pod %s closes, which holds GPUs", pod.Name)
		}
	}
	return alive, nil
}

// RankLeases returns the labels of the Leases of some ranks.
func (s server) RankLeases(_ context.Context, run *rqv1.Run, ranks []string) ([]map[string]string, error) {
	var out []map[string]string
	for _, l := range s.leasesOfRanks(run, ranks) {
		out = append(out, l.Labels)
	}
	return out, nil
}

func (s server) leasesOfRanks(run *rqv1.Run, ranks []string) []*rqv1.Lease {
	var out []*rqv1.Lease
	for _, index := range ranks {
		for _, name := range s.leasesOf.sorted(rankKey(run.Name, reconcile.RankRole(run), index)) {
			out = append(out, s.Leases[name])
		}
	}
	return out
}

// WriteStatus stores a Run's status.
func (s server) WriteStatus(_ context.Context, o *lifecycle.Observed, status *rqv1.RunStatus) error {
	next := o.Run.DeepCopy()
	next.Status = *status
	s.checkWorldSize(o, status)
	return s.write(Statuses, next.Name, func() {
		if s.Stored != nil {
			s.Stored(next)
		}
		if s.writesLate {
			s.Runs[next.Name], s.lateRuns[next.Name] = stored(next), true
			return
		}
		s.SetRun(stored(next))
	})
}

// checkWorldSize asserts that the ranks of a gang which starts have been told how many there are. Of a Run that has
// been edited fewer may have come to be desired since.
func (s server) checkWorldSize(o *lifecycle.Observed, status *rqv1.RunStatus) {
	starts := status.Phase == rqv1.RunRunning && o.Run.Status.Phase != rqv1.RunRunning
	if !starts || o.Run.Spec.Opportunistic || status.Width == nil {
		return
	}
	ranks := int(status.Width.Granted) / o.Demand.GPUsPerPod
	for _, pod := range s.PodsOf(o.Run.Name) {
		run, part, ok := rank.Membership(pod)
		if !ok || run != o.Run.UID || part.Spare || part.Index >= ranks || pod.Spec.NodeName == "" {
			continue
		}
		told, _ := strconv.Atoi(pod.Annotations[rqv1.AnnotationWorldSize])
		if told != ranks && (told < ranks || o.Run.Generation == 1) {
			s.violated("R32: pod %s is told of %d ranks, and its Run starts with %d", pod.Name, told, ranks)
		}
	}
}

// DeletePods tells pods to go. Those of lost nodes are gone.
func (s server) DeletePods(_ context.Context, deletions []lifecycle.Deletion) error {
	for _, d := range deletions {
		err := s.write(Deletions, d.Pod.Name, func() {
			s.notify(d)
			if d.If == lifecycle.NodeLost && s.Pods[d.Pod.UID] != nil {
				s.DeletePod(d.Pod.UID)
				return
			}
			if !d.By.IsZero() {
				s.EndInPlace(d.Pod.UID, d.By)
				return
			}
			s.TerminateWithin(d.Pod.UID, d.GraceSeconds)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// notify tells a pod that is cut that it is about to end, and why.
func (s server) notify(d lifecycle.Deletion) {
	if is := s.Pods[d.Pod.UID]; is != nil && d.Notice != nil && !rank.Theirs(is) {
		s.disrupt(d.Pod.UID, string(d.Notice.Reason), d.Notice.Message)
	}
}

// ReadLease returns a Lease that is stored.
func (s server) ReadLease(_ context.Context, name types.NamespacedName) (*rqv1.Lease, error) {
	return s.Leases[name.Name], nil
}

// OpenLease stores a Lease of a pod that goes on.
func (s server) OpenLease(_ context.Context, lease *rqv1.Lease) (*rqv1.Lease, error) {
	if is := s.Leases[lease.Name]; is != nil {
		return is, nil
	}
	opened := stored(lease)
	opened.UID = s.UID()
	return opened, s.write(Openings, lease.Name, func() { s.storeLease(opened) })
}

// OutliveLeases stores until when Leases are open whose pods are gone.
func (s server) OutliveLeases(_ context.Context, leases []*rqv1.Lease) error {
	for _, lease := range leases {
		s.Book.SetLease(lease)
		if err := s.write(Closings, lease.Name, func() { s.SetLease(lease) }); err != nil {
			return err
		}
	}
	return nil
}

// CloseLeases stores that Leases are closed.
func (s server) CloseLeases(_ context.Context, leases []*rqv1.Lease) ([]*rqv1.Lease, error) {
	for i, lease := range leases {
		if s.Leases[lease.Name].Status.Closed {
			s.violated("I4: Lease %s is closed twice", lease.Name)
		}
		if err := s.write(Closings, lease.Name, func() { s.SetLease(lease) }); err != nil {
			return leases[:i], err
		}
	}
	return leases, nil
}

// DeleteRun deletes a Run, unless it is another by now or has been edited.
func (s server) DeleteRun(_ context.Context, run *rqv1.Run) error {
	if is := s.Runs[run.Name]; is == nil || is.UID != run.UID || is.Generation != run.Generation {
		return nil
	}
	return s.write(Expiries, run.Name, func() { s.Cluster.DeleteRun(run.Name) })
}

// CreateService makes a Run's Service.
func (s server) CreateService(_ context.Context, service *corev1.Service) error {
	run, _ := rank.RunOf(service)
	return s.write(Services, service.Name, func() { s.services[service.Name] = run })
}

// WriteGuard makes or changes a Run's PodDisruptionBudget.
func (s server) WriteGuard(_ context.Context, guard *policyv1.PodDisruptionBudget) error {
	return s.write(Services, guard.Name, func() { s.guards[guard.Name] = stored(guard) })
}

// DropGuard deletes it.
func (s server) DropGuard(_ context.Context, guard *policyv1.PodDisruptionBudget) error {
	return s.write(Services, guard.Name, func() { delete(s.guards, guard.Name) })
}

// CreatePods makes pods, as far as they are taken and not there.
func (s server) CreatePods(_ context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		if s.named(pod.Name) != nil {
			continue
		}
		s.checkEpoch(pod)
		if run := types.UID(pod.Labels[rqv1.LabelRunUID]); pod.Spec.Subdomain != "" && s.services[pod.Spec.Subdomain] != run {
			s.violated("pod %s has a subdomain, and its Run no Service", pod.Name)
		}
		if s.Quota > 0 && len(s.Pods) >= s.Quota {
			return forbidden(pod.Name, fmt.Sprintf("%s: pods, requested: pods=1, used: pods=%d, limited: pods=%d", exceededQuota,
				len(s.Pods), s.Quota))
		} else if why := s.Denies[pod.Name]; why != "" {
			return forbidden(pod.Name, why)
		}
		err := s.write(Creations, pod.Name, func() {
			pod.UID, pod.CreationTimestamp = s.UID(), metav1.NewTime(s.Now.Truncate(time.Second))
			if s.Admits != nil {
				s.Admits(pod)
			}
			s.SetPod(pod)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkEpoch asserts that a rank's pod can be told from all that had Leases before it.
func (s server) checkEpoch(pod *corev1.Pod) {
	epoch, err := strconv.Atoi(pod.Labels[rqv1.LabelEpoch])
	if err != nil {
		return // no rank
	}
	run := s.Runs[pod.Labels[rqv1.LabelRun]]
	for _, l := range s.leasesOfRanks(run, []string{pod.Labels[rqv1.LabelIndex]}) {
		if was, _ := strconv.Atoi(l.Labels[rqv1.LabelEpoch]); was >= epoch && l.Spec.RunRef.UID == run.UID {
			s.violated("pod %s has the epoch %d, and one before it has had %d", pod.Name, epoch, was)
		}
	}
}

// WriteReservation stores a Reservation, unless the process had not seen the latest version. The process sees it
// again by Deliver.
func (s server) WriteReservation(_ context.Context, w *lifecycle.Write) (*rqv1.Reservation, error) {
	if !s.Reserves {
		return nil, nil
	}
	r, was := stored(w.Reservation), s.Reservations[w.Reservation.Name]
	switch {
	case w.Verb == lifecycle.Create && was != nil:
		r = was
	case w.Verb == lifecycle.Create:
		r.UID, r.CreationTimestamp, r.Status = s.UID(), metav1.NewTime(s.Now.Truncate(time.Second)), rqv1.ReservationStatus{}
	case was == nil || was.ResourceVersion != r.ResourceVersion:
		return nil, errors.New("another version is stored")
	case w.Verb == lifecycle.Update:
		r.Status = *was.Status.DeepCopy()
	default:
		r.Spec = *was.Spec.DeepCopy()
	}
	if err := s.write(Reservations, r.Name, func() { s.storeReservation(was, r) }); err != nil {
		return nil, err
	}
	s.Book.SetReservation(r)
	for _, word := range reconcile.StuckWords(r, w.Stuck) {
		if s.Worded != nil {
			s.Worded(word)
		}
	}
	return r, nil
}

// storeReservation stores a Reservation that is not as it was.
func (s server) storeReservation(was, r *rqv1.Reservation) {
	if was == r {
		return
	}
	r.ResourceVersion = strconv.Itoa(s.Writes)
	s.Reservations[r.Name] = r
	s.under = append(s.under, version{r, false})
	if s.Reserved != nil {
		s.Reserved(was, r)
	}
}

// stored returns an object as it comes back from the API server: times in whole seconds.
func stored[T any](in *T) *T {
	text, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	out := new(T)
	if err := json.Unmarshal(text, out); err != nil {
		panic(err)
	}
	return out
}
