package reconcile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// deletePods deletes those pods for which the API server itself says that there is evidence. What could not be found
// out of some holds up no others. Behind says that the cache of pods, or that of Leases, lacks what a pod was to go
// for: an event is on its way.
func (r *Runs) deletePods(ctx context.Context, deletions []lifecycle.Deletion) (behind bool, err error) {
	certain, doubtful, unanswered := sift(ctx, r.api, deletions, questionOf)
	behind = slices.ContainsFunc(doubtful, func(d lifecycle.Deletion) bool {
		return d.If == lifecycle.Unbound || d.If == lifecycle.Unpaid
	})
	if len(certain) == 0 {
		return behind, unanswered
	}
	for i := range certain {
		certain[i].GraceSeconds = grace(&certain[i])
	}
	return behind, errors.Join(unanswered, r.api.DeletePods(ctx, certain))
}

// sift tells what there is evidence for from what there is none for. Each question is asked once; what is done by
// decision needs none.
func sift[T any](ctx context.Context, of Evidence, things []T, question func(*T) Question) (certain, doubtful []T,
	unanswered error) {
	var questions []Question
	at := map[Question]int{}
	for i := range things {
		q := question(&things[i])
		if _, asked := at[q]; !asked && q.If != lifecycle.NoEvidence {
			at[q] = len(questions)
			questions = append(questions, q)
		}
	}
	var answers []bool
	if len(questions) > 0 {
		answers, unanswered = of.Ask(ctx, questions)
	}
	for i := range things {
		if q := question(&things[i]); q.If == lifecycle.NoEvidence || answers[at[q]] {
			certain = append(certain, things[i])
		} else {
			doubtful = append(doubtful, things[i])
		}
	}
	return certain, doubtful, unanswered
}

// questionOf returns what is to be so before a pod is deleted; pods of one node, or one Run, share the question.
func questionOf(d *lifecycle.Deletion) Question {
	q, about := Question{If: d.If}, cmp.Or(d.About, d.Pod)
	switch d.If {
	case lifecycle.NodeLost:
		q.Node = d.Node
	case lifecycle.RunGone:
		q.Run, q.UID = types.NamespacedName{Namespace: d.Pod.Namespace, Name: d.Pod.Labels[rqv1.LabelRun]}, d.Run
	case lifecycle.Unpaid:
		q.Lease = types.NamespacedName{Namespace: about.Namespace, Name: rank.LeaseName(about.Name, about.UID)}
	case lifecycle.Unbound:
		q.Pod, q.UID = types.NamespacedName{Namespace: about.Namespace, Name: about.Name}, d.Run
	}
	return q
}

// grace returns what a pod has to end, in seconds; nil for its own grace period.
func grace(d *lifecycle.Deletion) *int64 {
	switch {
	case d.Notice != nil:
		return &d.Notice.GraceSeconds
	case d.If == lifecycle.NodeLost:
		return new(int64) // nobody is there to confirm the end
	}
	return d.GraceSeconds
}

// closeLeases closes Leases whose pods have ended, and returns those that were open until now. Of a pod that no cache
// holds the API server is asked first: while it holds GPUs the cache is behind, and the pod's own event looks again.
// Behind says that no cache knows yet of a node what the API server does: what was held there stays open.
func (r *Runs) closeLeases(ctx context.Context, o *lifecycle.Observed, closings []lifecycle.Closing) (
	closed []*rqv1.Lease, behind bool, err error) {
	closings, doubtful, unanswered := sift(ctx, r.api, closings, func(c *lifecycle.Closing) Question {
		return Question{If: c.If, Node: c.Lease.Node()}
	})
	behind = len(doubtful) > 0
	closings, err = r.withoutAlive(ctx, o, closings)
	if err != nil {
		return nil, behind, errors.Join(unanswered, err)
	}
	if len(closings) == 0 {
		return nil, behind, unanswered
	}
	leases := make([]*rqv1.Lease, len(closings))
	for i := range closings {
		leases[i] = r.close(&closings[i])
	}
	closed, err = r.api.CloseLeases(ctx, leases)
	return closed, behind, errors.Join(unanswered, err)
}

// withoutAlive leaves out the Leases of pods that no cache holds and the API server does.
func (r *Runs) withoutAlive(ctx context.Context, o *lifecycle.Observed, closings []lifecycle.Closing) (
	[]lifecycle.Closing, error) {
	seen := map[types.UID]bool{}
	for _, pod := range o.Pods {
		seen[pod.UID] = true
	}
	var unseen []types.UID
	for _, c := range closings {
		if pod := c.Lease.PodUID(); !seen[pod] {
			unseen = append(unseen, pod)
		}
	}
	if len(unseen) == 0 {
		return closings, nil
	}
	alive, err := r.api.Alive(ctx, o.Name, unseen)
	return slices.DeleteFunc(slices.Clone(closings), func(c lifecycle.Closing) bool {
		return alive[c.Lease.PodUID()]
	}), err
}

// outlive has Leases say until when they are open for containers whose pods are gone. What the API server refuses to
// write the book knows all the same.
func (r *Runs) outlive(ctx context.Context, o *lifecycle.Observed, closings []lifecycle.Closing) error {
	closings, err := r.withoutAlive(ctx, o, closings)
	if err != nil || len(closings) == 0 {
		return err
	}
	leases := make([]*rqv1.Lease, len(closings))
	for i := range closings {
		by := metav1.NewMicroTime(closings[i].Ended)
		leases[i] = closings[i].Lease.DeepCopy()
		lost := cmp.Or(leases[i].Status.Lost, lost(&closings[i], metav1.NewMicroTime(r.now())))
		leases[i].Status = rqv1.LeaseStatus{EndsBy: &by, Lost: lost}
	}
	if err := r.api.OutliveLeases(ctx, leases); Passes(err) {
		return err
	}
	return nil
}

// close returns a Lease as it is once it is closed. A clock that was set back makes no negative time.
func (r *Runs) close(c *lifecycle.Closing) *rqv1.Lease {
	lease, at := c.Lease.DeepCopy(), c.Ended
	if at.IsZero() {
		at = r.now()
	}
	ended := metav1.NewMicroTime(at)
	if ended.Before(&lease.Spec.Start) {
		ended = lease.Spec.Start
	}
	was := lease.Status
	lease.Status = rqv1.LeaseStatus{Closed: true, Ended: &ended, ClosureReason: c.Reason, Cause: c.Cause,
		EndsBy: was.EndsBy, Lost: cmp.Or(was.Lost, lost(c, ended))}
	return lease
}

// lost returns the work that is lost with a Lease; nil when none is.
func lost(c *lifecycle.Closing, ended metav1.MicroTime) *rqv1.LeaseLost {
	seconds := int64(ended.Sub(c.LostSince) / time.Second)
	if c.LostSince.IsZero() || seconds <= 0 {
		return nil
	}
	return &rqv1.LeaseLost{GPUSeconds: int64(c.Lease.GPUs()) * seconds, OthersGPUSeconds: int64(c.Others) * seconds}
}
