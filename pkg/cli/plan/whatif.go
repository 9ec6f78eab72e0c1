package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/cli/manifest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// start is how a Run would start now.
type start struct {
	GPUs   int                   `json:"gpus"`
	Nodes  []string              `json:"nodes"`
	Payers []rqv1.PayingEnvelope `json:"payingEnvelopes"`
}

// change is a change to a Run that would make it start now.
type change struct {
	What string `json:"what"`
	GPUs int    `json:"gpus"`
}

// oracle knows what would happen to a Run that is not there.
type oracle struct {
	// types are the types of GPU that there are.
	types  []string
	answer func(context.Context, *question) (planAnswer, error)
}

// whatIf answers what would happen to each Run of some files, and to each group of pods that their objects make, if
// it were made now.
func (p *planner) whatIf(ctx context.Context, c client.Client, namespace string, explicit bool) error {
	entries, err := manifest.ReadAny(ctx, p.files, p.In)
	if err != nil {
		return err
	}
	if err := manifest.SetNamespaces(entries, namespace, explicit); err != nil {
		return err
	}
	knows, err := p.oracle(ctx, c)
	if err != nil {
		return err
	}
	questions, err := p.questions(ctx, c, entries, knows.types)
	if err != nil {
		return err
	}
	for i := range questions {
		q := &questions[i]
		answer, err := knows.answer(ctx, q)
		if err != nil {
			return err
		}
		if p.output.ForPeople() {
			if i > 0 {
				fmt.Fprintln(p.Out)
			}
			q.names.Into(&answer)
		}
		if err := p.print(ctx, c, answer); err != nil {
			return err
		}
	}
	if len(questions) == 0 {
		return session.Fail(session.ExitError, "there is no Run in %v, and nothing that makes pods which ask for GPUs",
			p.files)
	}
	return nil
}

// oracle decides as the scheduler does from what it decides from or, for who may not read that, asks the scheduler.
func (p *planner) oracle(ctx context.Context, c client.Client) (*oracle, error) {
	now := p.Now()
	b, unread, err := world.LiveBook(ctx, c, now)
	if apierrors.IsForbidden(err) {
		return p.scheduler(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	return &oracle{types: b.Flavors(), answer: func(_ context.Context, q *question) (planAnswer, error) {
		q.run.UID, q.run.CreationTimestamp = "what-if", metav1.NewTime(now)
		answer := imagined(q.run, b.WhatIf(q.run, now), now)
		answer.Notes, answer.Unread = append(q.notes, answer.Notes...), append(q.unread, unread...)
		return answer, nil
	}}, nil
}

// questions returns what is asked about: the Runs, as far as the API server would take them, and then those that would
// stand for the pods that other objects make.
func (p *planner) questions(ctx context.Context, c client.Client, entries []manifest.Entry,
	types []string) ([]question, error) {
	var questions []question
	var others []map[string]any
	for _, e := range entries {
		if e.Object.GetKind() != "Run" {
			others = append(others, e.Object.Object)
			continue
		}
		if err := c.Create(ctx, e.Object.DeepCopy(), client.DryRunAll); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, session.Fail(session.ExitError, "%s", manifest.RefusedInWords(p.Session, e, err))
		}
		run := &rqv1.Run{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(e.Object.Object, run); err != nil {
			return nil, session.Fail(session.ExitError, "%v: %v", e.From, err)
		}
		questions = append(questions, question{run: run})
	}
	theirs, err := p.theirs(ctx, c, types, others)
	return append(questions, theirs...), err
}

// changes looks for what would make a Run that waits start now.
func (p *planner) changes(ctx context.Context, c client.Client, run *rqv1.Run, answer *planAnswer) error {
	b, unread, err := world.LiveBook(ctx, c, p.Now())
	if apierrors.IsForbidden(err) {
		answer.Unread = append(answer.Unread, "what changes would make it start now: "+session.Refusal(err))
		return nil
	}
	if err != nil {
		return err
	}
	outlook := b.WhatIf(run, p.Now())
	answer.Unread = append(answer.Unread, unread...)
	answer.Changes = changesOf(outlook)
	return nil
}

// imagined is the answer about a Run that has not been submitted.
func imagined(run *rqv1.Run, o book.Outlook, now time.Time) planAnswer {
	a := planOf(run, nil, now)
	a.Phase, a.Looked, a.Message = rqv1.RunPending, true, ""
	a.Changes, a.NotAsked, a.Notes = changesOf(o), o.NotAsked, o.Remarks
	if len(o.Places) > 0 {
		a.StartsNow = &start{GPUs: o.GPUs}
		a.StartsNow.Nodes, a.StartsNow.Payers = placesOf(o.Places, o.GPUsPerPod)
	}
	if o.Refusal == nil {
		return a
	}
	a.Reason, a.Message, a.Refusal = string(o.Refusal.Reason), o.Refusal.Message, o.Refusal.Published()
	if q := o.InLine; q != nil {
		a.Queue = &rqv1.RunQueue{Ahead: int32(q.Ahead), Of: int32(q.Of), At: metav1.NewTime(q.At)}
	}
	if o.Promise == nil {
		return a
	}
	at := metav1.NewTime(o.Promise.At)
	a.Promise = &view.Promise{
		EarliestStart: at, CountdownSeconds: view.CountdownSeconds(at, now), Confidence: o.Promise.Confidence,
		DeficitGPUs: int32(o.Promise.Slice.Deficit), Scope: o.Promise.Slice.Scope, Remedies: o.Promise.Remedies,
		ConflictSet: o.Promise.Conflicts, Conflicts: resolver.TotalOf(o.Promise.Conflicts), Odds: o.Promise.Odds,
		PayingEnvelopes: o.Promise.Payers,
		IntendedSlice:   &rqv1.IntendedSlice{Domain: o.Promise.Slice.Labels},
	}
	for _, held := range o.Promise.Nodes {
		a.Promise.IntendedSlice.Nodes = append(a.Promise.IntendedSlice.Nodes, held.Node)
	}
	return a
}

func changesOf(o book.Outlook) []change {
	var out []change
	for _, c := range o.Changes {
		out = append(out, change(c))
	}
	return out
}

// placesOf returns the nodes of some pods of a size, sorted, and who pays for them.
func placesOf(places []plan.Assignment, gpus int) ([]string, []rqv1.PayingEnvelope) {
	nodes, payers := map[string]bool{}, map[rqv1.PayingEnvelope]int{}
	for _, place := range places {
		nodes[place.Node] = true
		payers[rqv1.PayingEnvelope{Budget: place.Payer.Budget, Envelope: place.Payer.Envelope}] += gpus
	}
	var paying []rqv1.PayingEnvelope
	for payer, gpus := range payers {
		payer.GPUs = int32(gpus)
		paying = append(paying, payer)
	}
	slices.SortFunc(paying, func(x, y rqv1.PayingEnvelope) int {
		return slices.Compare([]string{x.Budget, x.Envelope}, []string{y.Budget, y.Envelope})
	})
	return slices.Sorted(maps.Keys(nodes)), paying
}

// lines says how a Run would start now.
func (s *start) lines(wide bool) []string {
	if s == nil {
		return nil
	}
	out := []string{fmt.Sprintf("now, with %d GPUs", s.GPUs)}
	if len(s.Nodes) > 0 {
		out[0] += " on " + view.NodesInWords(s.Nodes, wide)
	}
	for _, e := range s.Payers {
		out = append(out, fmt.Sprintf("paid by %s/%s (%d GPUs)", e.Budget, e.Envelope, e.GPUs))
	}
	return out
}

func changeLines(changes []change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, fmt.Sprintf("%s (%d GPUs)", c.What, c.GPUs))
	}
	return out
}
