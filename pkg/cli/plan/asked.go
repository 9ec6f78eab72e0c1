package plan

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
)

const (
	// answerWithin is how long the scheduler may take to answer, and answerPolled how often it is looked.
	answerWithin = 30 * time.Second
	answerPolled = 100 * time.Millisecond
	// whatIfSeconds is after how long the scheduler deletes a Run that only asks, if whoever asked has not: he may have
	// been killed.
	whatIfSeconds = 120
	// forgetWithin is how long the deletion of such a Run may take, also when somebody has pressed Ctrl-C.
	forgetWithin = 5 * time.Second
)

// askedNote says what an answer of the scheduler's lacks.
const askedNote = "you may not read nodes and the Runs of all namespaces, so this is the scheduler's answer: " +
	"it names neither nodes nor payers nor the Runs that may be cut"

// scheduler has the scheduler say what would happen, for who may not read what it decides from.
func (p *planner) scheduler(ctx context.Context, c client.Client) (*oracle, error) {
	types, err := world.GPUTypes(ctx, c)
	if err != nil {
		return nil, err
	}
	return &oracle{types: types, answer: func(ctx context.Context, q *question) (planAnswer, error) {
		forecast, err := p.whatIfSubmitted(ctx, c, q)
		if err != nil {
			return planAnswer{}, err
		}
		answer := foretold(q.run, forecast, p.Now())
		answer.Notes, answer.Unread = append(append(q.notes, forecast.Remarks...), askedNote), q.unread
		return answer, nil
	}}, nil
}

// whatIfSubmitted makes a suspended Run like the one that is asked about, to which nothing is given, waits for the
// scheduler's forecast in its status and deletes it again.
func (p *planner) whatIfSubmitted(ctx context.Context, c client.Client, q *question) (*rqv1.RunForecast, error) {
	asks := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: q.run.Namespace, GenerateName: rqv1.WhatIfPrefix,
		Labels: map[string]string{rqv1.LabelWhatIf: "true"}}, Spec: *q.run.Spec.DeepCopy()}
	asks.Spec.Suspend, asks.Spec.TTLSecondsAfterFinished = true, ptr.To[int32](whatIfSeconds)
	if err := c.Create(ctx, asks); err != nil {
		return nil, session.Fail(session.ExitError, "Run %s, by which the scheduler would be asked about %s, is refused: %s",
			rqv1.WhatIfPrefix+"*", cmp.Or(q.names[q.run.Name], q.run.Name), session.Refusal(err))
	}
	defer p.forget(ctx, c, asks)
	var run rqv1.Run
	err := wait.PollUntilContextTimeout(ctx, answerPolled, answerWithin, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(asks), &run)
		return run.Status.Forecast != nil, err
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case wait.Interrupted(err):
		return nil, session.Fail(session.ExitError, "the scheduler has not answered within %s: ask your operators whether "+
			"jobtree-scheduler is running", answerWithin)
	}
	return run.Status.Forecast, err
}

// forget deletes a Run that has asked, whether or not somebody has pressed Ctrl-C.
func (p *planner) forget(ctx context.Context, c client.Client, asks *rqv1.Run) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetWithin)
	defer cancel()
	uid := asks.GetUID()
	if err := client.IgnoreNotFound(c.Delete(ctx, asks, client.Preconditions{UID: &uid})); err != nil {
		fmt.Fprintf(p.ErrOut, "Run %s, by which the scheduler was asked, could not be deleted: %s. It holds nothing, and "+
			"the scheduler deletes it within %d seconds.\n", asks.GetName(), session.Refusal(err), whatIfSeconds)
	}
}

// foretold is the answer about a Run that has not been submitted, from what the scheduler has said of one like it.
func foretold(run *rqv1.Run, f *rqv1.RunForecast, now time.Time) planAnswer {
	a := planOf(run, nil, now)
	a.Phase, a.Looked, a.Message, a.Refusal = rqv1.RunPending, true, f.Message, f.Refusal
	a.NotAsked = f.NotAsked
	if f.Refusal != nil {
		a.Reason = f.Refusal.Reason
	}
	if f.GPUs > 0 {
		a.StartsNow = &start{GPUs: int(f.GPUs), Nodes: []string{}, Payers: []rqv1.PayingEnvelope{}}
	}
	if f.EarliestStart == nil {
		return a
	}
	a.Promise = &view.Promise{EarliestStart: metav1.NewTime(f.EarliestStart.Time)}
	a.Promise.CountdownSeconds = view.CountdownSeconds(a.Promise.EarliestStart, now)
	if e := f.Expected; e != nil {
		a.Confidence, a.DeficitGPUs, a.Scope, a.Remedies = e.Confidence, e.DeficitGPUs, e.Scope, e.Remedies
	}
	return a
}

// byReservation answers from the Reservation of a Run that may not be read, if there is one; refused is why.
func (p *planner) byReservation(ctx context.Context, c client.Client, key client.ObjectKey, refused error) (planAnswer,
	error) {
	var list rqv1.ReservationList
	if err := c.List(ctx, &list, client.InNamespace(key.Namespace)); err != nil {
		return planAnswer{}, refused
	}
	for i := range list.Items {
		r := &list.Items[i]
		if r.Spec.RunRef.Name != key.Name || view.HasEnded(r) {
			continue
		}
		promise := view.PromiseOf(r, p.Now())
		a := planAnswer{At: metav1.NewTime(p.Now()), Run: key.Name, Namespace: key.Namespace, Phase: rqv1.RunPending,
			Looked: true, Promise: &promise, Unread: []string{"the Run itself: " + session.Refusal(refused)}}
		for _, e := range r.Spec.PayingEnvelopes {
			a.GPUs += e.GPUs
		}
		return a, nil
	}
	return planAnswer{}, refused
}
