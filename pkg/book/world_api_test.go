package book_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// The world is the API server on which decisions are carried out. Its caches are never behind, so that what decisions rest on is so.
var _ reconcile.API = &world{}

// errKilled ends the work of a process that dies before a write.
var errKilled = errors.New("the process dies here")

// killed reports whether the controller dies before its next write.
func (w *world) killed() bool {
	if w.fuse > 0 {
		if w.fuse--; w.fuse == 0 {
			w.fuse = -1
		}
	}
	if w.fuse == 0 {
		w.storm.write()
	}
	return w.fuse < 0
}

func (w *world) Ask(_ context.Context, questions []reconcile.Question) ([]bool, error) {
	answers := make([]bool, len(questions))
	for i := range questions {
		q := &questions[i]
		run := w.runs[q.Run.Name]
		switch {
		case q.If == lifecycle.NodeLost && !w.lost(q.Node):
			w.t.Fatalf("I12: pods are deleted for node %s, which stands", q.Node)
		case q.If == lifecycle.RunGone && run != nil && run.UID == q.UID:
			w.t.Fatalf("I12: pods are deleted for Run %s, which is there", q.Run)
		case q.If == lifecycle.Unpaid:
			w.t.Fatalf("a pod is bound without the Lease %s", q.Lease)
		}
		answers[i] = true
	}
	return answers, nil
}

func (w *world) Alive(_ context.Context, _ types.NamespacedName, unseen []types.UID) (map[types.UID]bool, error) {
	for _, uid := range unseen {
		if pod := w.pods[uid]; pod != nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			w.t.Fatalf("I12: the Lease of pod %s closes, which holds GPUs", pod.Name)
		}
	}
	return nil, nil
}

func (w *world) RankLeases(_ context.Context, run *rqv1.Run, ranks []string) ([]map[string]string, error) {
	var out []map[string]string
	for _, l := range w.leases {
		if l.Labels[rqv1.LabelRun] == run.Name && l.Labels[rqv1.LabelRole] == reconcile.RankRole(run) && slices.Contains(ranks, l.Labels[rqv1.LabelIndex]) {
			out = append(out, l.Labels)
		}
	}
	return out, nil
}

func (w *world) WriteStatus(_ context.Context, o *lifecycle.Observed, status *rqv1.RunStatus) error {
	if w.killed() {
		return errKilled
	}
	next := o.Run.DeepCopy()
	next.Status = *status
	w.runs[next.Name] = w.storm.stored(next)
	w.book.SetRun(w.runs[next.Name])
	return nil
}

// WriteReservation writes nothing in a world without Reservations.
func (w *world) WriteReservation(_ context.Context, write *lifecycle.Write) (*rqv1.Reservation, error) {
	if w.storm == nil {
		return nil, nil
	}
	return w.storm.put(write)
}

func (w *world) DeletePods(_ context.Context, deletions []lifecycle.Deletion) error {
	for _, d := range deletions {
		if w.killed() {
			return errKilled
		}
		switch {
		case d.If == lifecycle.NodeLost:
			w.deletePod(d.Pod.UID)
		case !w.storm.giveNotice(d):
			w.terminateWithin(d.Pod.UID, d.GraceSeconds)
		}
	}
	return nil
}

func (w *world) CloseLeases(_ context.Context, leases []*rqv1.Lease) ([]*rqv1.Lease, error) {
	for i, lease := range leases {
		if w.leases[lease.Name].Status.Closed {
			w.t.Fatalf("I4: Lease %s is closed twice", lease.Name)
		}
		if w.killed() {
			return leases[:i], errKilled
		}
		w.leases[lease.Name] = lease
		w.book.SetLease(lease)
	}
	return leases, nil
}

func (w *world) CreateService(_ context.Context, service *corev1.Service) (bool, error) {
	if w.killed() {
		return false, errKilled
	}
	run, _ := rank.RunOf(service)
	made := w.services[service.Name] != run
	w.services[service.Name] = run
	return made, nil
}

func (w *world) CreatePods(_ context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		if w.killed() {
			return errKilled
		}
		if w.quota == 0 {
			return apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, errors.New("exceeded quota"))
		}
		w.quota = max(-1, w.quota-1)
		w.checkEpoch(pod)
		pod.UID, pod.CreationTimestamp = w.uid(), metav1.NewTime(w.now.Truncate(time.Second))
		w.setPod(pod)
	}
	return nil
}

// checkEpoch asserts that a rank's pod can be told from all that had Leases before it.
func (w *world) checkEpoch(pod *corev1.Pod) {
	epoch, err := strconv.Atoi(pod.Labels[rqv1.LabelEpoch])
	if err != nil {
		return // no rank
	}
	run := w.runs[pod.Labels[rqv1.LabelRun]]
	for _, l := range w.leases {
		if l.Spec.RunRef.UID != run.UID || l.Labels[rqv1.LabelRole] != reconcile.RankRole(run) || l.Labels[rqv1.LabelIndex] != pod.Labels[rqv1.LabelIndex] {
			continue
		}
		if was, _ := strconv.Atoi(l.Labels[rqv1.LabelEpoch]); was >= epoch {
			w.t.Fatalf("pod %s has the epoch %d, and one before it has had %d", pod.Name, epoch, was)
		}
	}
}

// reconcile does what the Run controller does.
func (w *world) reconcile(name string) {
	ctx := context.Background()
	objects := book.Objects{Name: types.NamespacedName{Namespace: "ns", Name: name}, Run: w.runs[name]}
	for _, uid := range w.sortedPods() {
		if w.pods[uid].Labels[rqv1.LabelRun] == name {
			objects.Pods = append(objects.Pods, w.pods[uid])
		}
	}
	for _, lease := range w.openLeases() {
		if lease.Spec.RunRef.Name == name {
			objects.Leases = append(objects.Leases, lease)
		}
	}
	if w.storm != nil {
		objects.Reservations = w.storm.seenOf(name)
	}
	observed, err := w.order.Observe(ctx, objects)
	if err != nil {
		return // the next pass finds out whether it was for good
	}
	d := lifecycle.Decide(observed)
	if w.replays {
		w.replayed(observed, d)
	}
	out, _ := w.order.CarryOut(ctx, observed, d)
	if out.Retry > 0 && w.retries[objects.Name].IsZero() {
		w.retries[objects.Name] = w.now.Add(out.Retry)
	}
	if w.fuse < 0 {
		w.fuse = 0
		w.crash()
	}
}
