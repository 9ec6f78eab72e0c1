package reconcile

import (
	"cmp"
	"context"
	"errors"
	"slices"

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
	so, unanswered := ask(ctx, r.api, deletions, questionOf)
	var certain []lifecycle.Deletion
	for i, d := range deletions {
		if so[i] {
			d.GraceSeconds = grace(&d)
			certain = append(certain, d)
		} else if d.If == lifecycle.Unbound || d.If == lifecycle.Unpaid {
			behind = true
		}
	}
	if len(certain) == 0 {
		return behind, unanswered
	}
	return behind, errors.Join(unanswered, r.api.DeletePods(ctx, certain))
}

// ask reports of each thing to do whether there is evidence for it. Each question is asked once; what is done by
// decision needs none.
func ask[T any](ctx context.Context, of Evidence, things []T, question func(*T) Question) ([]bool, error) {
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
	var unanswered error
	if len(questions) > 0 {
		answers, unanswered = of.Ask(ctx, questions)
	}
	so := make([]bool, len(things))
	for i := range things {
		q := question(&things[i])
		so[i] = q.If == lifecycle.NoEvidence || answers[at[q]]
	}
	return so, unanswered
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
// What is behind says that no cache knows yet of a node what the API server does: nothing is closed then, and the
// node's own event looks again.
func (r *Runs) closeLeases(ctx context.Context, o *lifecycle.Observed, closings []lifecycle.Closing) (
	closed []*rqv1.Lease, behind bool, err error) {
	so, err := ask(ctx, r.api, closings, func(c *lifecycle.Closing) Question {
		if c.If == lifecycle.NoEvidence {
			return Question{}
		}
		return Question{If: c.If, Node: c.Lease.Node()}
	})
	if err != nil || slices.Contains(so, false) {
		return nil, true, err
	}
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
	if len(unseen) > 0 {
		alive, err := r.api.Alive(ctx, o.Name, unseen)
		if err != nil {
			return nil, false, err
		}
		closings = slices.DeleteFunc(slices.Clone(closings), func(c lifecycle.Closing) bool {
			return alive[c.Lease.PodUID()]
		})
	}
	if len(closings) == 0 {
		return nil, false, nil
	}
	leases := make([]*rqv1.Lease, len(closings))
	for i := range closings {
		leases[i] = r.close(&closings[i])
	}
	closed, err = r.api.CloseLeases(ctx, leases)
	return closed, false, err
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
	lease.Status = rqv1.LeaseStatus{Closed: true, Ended: &ended, ClosureReason: c.Reason}
	return lease
}
