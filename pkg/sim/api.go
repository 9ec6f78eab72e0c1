package sim

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// Caches of pods, Runs and Leases are never behind here, so that what decisions rest on is so.
var _ reconcile.API = &Cluster{}

// Reconcile does what the Run controller does for one Run.
func (c *Cluster) Reconcile(name string) error {
	delete(c.changed, name)
	ctx := context.Background()
	objects := book.Objects{Name: keyOf(name), Run: c.Runs[name], Pods: c.PodsOf(name)}
	for _, lease := range c.openOf.sorted(name) {
		objects.Leases = append(objects.Leases, c.Leases[lease])
	}
	for _, reservation := range c.seenOf.sorted(name) {
		objects.Reservations = append(objects.Reservations, c.Seen[reservation])
	}
	observed, err := c.order.Observe(ctx, objects)
	if err != nil {
		return err
	}
	d := lifecycle.Decide(observed)
	if c.Decided != nil {
		c.Decided(observed, d)
	}
	out, err := c.order.CarryOut(ctx, observed, d)
	if out.Retry > 0 && !c.Retries.Has(name) {
		c.Retries.Set(name, c.Now.Add(out.Retry))
	}
	c.looks.Delete(name)
	if out.After > 0 {
		c.looks.Set(name, c.Now.Add(out.After))
	}
	return err
}

// Ask says yes: nothing is asked of which the cache is wrong.
func (c *Cluster) Ask(_ context.Context, questions []reconcile.Question) ([]bool, error) {
	answers := make([]bool, len(questions))
	for i := range questions {
		q := &questions[i]
		run := c.Runs[q.Run.Name]
		switch {
		case q.If == lifecycle.NodeLost && !c.Lost(q.Node):
			c.violated("I12: pods are deleted for node %s, which stands", q.Node)
		case q.If == lifecycle.RunGone && run != nil && run.UID == q.UID:
			c.violated("I12: pods are deleted for Run %s, which is there", q.Run)
		case q.If == lifecycle.Unpaid:
			c.violated("I2: a pod is bound without the Lease %s", q.Lease)
		}
		answers[i] = true
	}
	return answers, nil
}

// Alive returns none: no Lease closes of a pod that holds GPUs.
func (c *Cluster) Alive(_ context.Context, _ types.NamespacedName, unseen []types.UID) (map[types.UID]bool, error) {
	for _, uid := range unseen {
		if pod := c.Pods[uid]; pod != nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			c.violated("I12: the Lease of pod %s closes, which holds GPUs", pod.Name)
		}
	}
	return nil, nil
}

// RankLeases returns the labels of the Leases of some ranks.
func (c *Cluster) RankLeases(_ context.Context, run *rqv1.Run, ranks []string) ([]map[string]string, error) {
	var out []map[string]string
	for _, l := range c.leasesOfRanks(run, ranks) {
		out = append(out, l.Labels)
	}
	return out, nil
}

func (c *Cluster) leasesOfRanks(run *rqv1.Run, ranks []string) []*rqv1.Lease {
	var out []*rqv1.Lease
	labels := map[string]string{rqv1.LabelRole: reconcile.RankRole(run)}
	for _, labels[rqv1.LabelIndex] = range ranks {
		for _, name := range c.leasesOf.sorted(rankOf(run.Name, labels)) {
			out = append(out, c.Leases[name])
		}
	}
	return out
}

// WriteStatus stores a Run's status.
func (c *Cluster) WriteStatus(_ context.Context, o *lifecycle.Observed, status *rqv1.RunStatus) error {
	next := o.Run.DeepCopy()
	next.Status = *status
	return c.write(Statuses, next.Name, func() {
		if c.Stored != nil {
			c.Stored(next)
		}
		c.SetRun(stored(next))
	})
}

// DeletePods tells pods to go. Those of lost nodes are gone.
func (c *Cluster) DeletePods(_ context.Context, deletions []lifecycle.Deletion) error {
	for _, d := range deletions {
		err := c.write(Deletions, d.Pod.Name, func() {
			if d.If == lifecycle.NodeLost {
				c.DeletePod(d.Pod.UID)
				return
			}
			c.TerminateWithin(d.Pod.UID, d.GraceSeconds)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// CloseLeases stores that Leases are closed.
func (c *Cluster) CloseLeases(_ context.Context, leases []*rqv1.Lease) ([]*rqv1.Lease, error) {
	for i, lease := range leases {
		if c.Leases[lease.Name].Status.Closed {
			c.violated("I4: Lease %s is closed twice", lease.Name)
		}
		if err := c.write(Closings, lease.Name, func() { c.SetLease(lease) }); err != nil {
			return leases[:i], err
		}
	}
	return leases, nil
}

// CreateService makes a Run's Service.
func (c *Cluster) CreateService(_ context.Context, service *corev1.Service) (made bool, err error) {
	run, _ := rank.RunOf(service)
	err = c.write(Services, service.Name, func() {
		made = c.services[service.Name] != run
		c.services[service.Name] = run
	})
	return made, err
}

// CreatePods makes pods, as far as they are taken.
func (c *Cluster) CreatePods(_ context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		c.checkEpoch(pod)
		err := c.write(Creations, pod.Name, func() {
			pod.UID, pod.CreationTimestamp = c.UID(), metav1.NewTime(c.Now.Truncate(time.Second))
			c.SetPod(pod)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkEpoch asserts that a rank's pod can be told from all that had Leases before it.
func (c *Cluster) checkEpoch(pod *corev1.Pod) {
	epoch, err := strconv.Atoi(pod.Labels[rqv1.LabelEpoch])
	if err != nil {
		return // no rank
	}
	run := c.Runs[pod.Labels[rqv1.LabelRun]]
	for _, l := range c.leasesOfRanks(run, []string{pod.Labels[rqv1.LabelIndex]}) {
		if was, _ := strconv.Atoi(l.Labels[rqv1.LabelEpoch]); was >= epoch && l.Spec.RunRef.UID == run.UID {
			c.violated("pod %s has the epoch %d, and one before it has had %d", pod.Name, epoch, was)
		}
	}
}

// WriteReservation stores a Reservation, unless the process had not seen the latest version. The process sees it
// again by Deliver.
func (c *Cluster) WriteReservation(_ context.Context, w *lifecycle.Write) (*rqv1.Reservation, error) {
	if !c.Reserves {
		return nil, nil
	}
	r, was := stored(w.Reservation), c.Reservations[w.Reservation.Name]
	switch {
	case w.Verb == lifecycle.Create && was != nil:
		r = was
	case w.Verb == lifecycle.Create:
		r.UID, r.CreationTimestamp, r.Status = c.UID(), metav1.NewTime(c.Now.Truncate(time.Second)), rqv1.ReservationStatus{}
	case was == nil || was.ResourceVersion != r.ResourceVersion:
		return nil, errors.New("another version is stored")
	case w.Verb == lifecycle.Update:
		r.Status = *was.Status.DeepCopy()
	default:
		r.Spec = *was.Spec.DeepCopy()
	}
	if err := c.write(Reservations, r.Name, func() { c.storeReservation(was, r) }); err != nil {
		return nil, err
	}
	c.Book.SetReservation(r)
	return r, nil
}

// storeReservation stores a Reservation that is not as it was.
func (c *Cluster) storeReservation(was, r *rqv1.Reservation) {
	if was == r {
		return
	}
	r.ResourceVersion = strconv.Itoa(c.Writes)
	c.Reservations[r.Name] = r
	c.under = append(c.under, version{r, false})
	if c.Reserved != nil {
		c.Reserved(was, r)
	}
}

// ForgetReservation deletes a Reservation, as somebody may.
func (c *Cluster) ForgetReservation(name string) {
	c.under = append(c.under, version{c.Reservations[name], true})
	delete(c.Reservations, name)
}

// Delivers reports whether a Reservation is on its way to the process.
func (c *Cluster) Delivers() bool { return len(c.under) > 0 }

// Deliver has the process see the next version of a Reservation that is on its way.
func (c *Cluster) Deliver() {
	if len(c.under) == 0 {
		return
	}
	v := c.under[0]
	c.under = c.under[1:]
	c.changed[v.Spec.RunRef.Name] = true
	if v.gone {
		delete(c.Seen, v.Name)
		c.seenOf.drop(v.Spec.RunRef.Name, v.Name)
		c.Book.DeleteReservation(v.Reservation)
		return
	}
	c.see(v.Reservation)
	c.Book.SetReservation(v.Reservation)
}

func (c *Cluster) see(r *rqv1.Reservation) {
	c.Seen[r.Name] = r
	c.seenOf.add(r.Spec.RunRef.Name, r.Name)
}

// seeAll has a process that begins see the Reservations that there are.
func (c *Cluster) seeAll() {
	c.under = nil
	clear(c.Seen)
	clear(c.seenOf)
	for _, name := range slices.Sorted(maps.Keys(c.Reservations)) {
		c.see(c.Reservations[name])
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
