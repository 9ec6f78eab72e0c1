package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// Published returns a refusal as the API has it.
func (r *Refusal) Published() *rqv1.RunRefusal {
	out := &rqv1.RunRefusal{Reason: string(r.Reason), Owner: r.Owner, WantedGPUs: int32(r.WantedGPUs),
		ShortGPUs: int32(r.ShortGPUs),
		Domain:    r.Domain, Limit: limitOf(r.Limit)}
	if r.Envelope != (budget.Key{}) {
		out.Envelope = r.Envelope.String()
	}
	if !r.Opens.IsZero() {
		opens := metav1.NewTime(r.Opens)
		out.Opens = &opens
	}
	if r.MaxDuration > 0 {
		out.MaxDuration = &metav1.Duration{Duration: r.MaxDuration}
	}
	if r.Rejected != nil {
		out.Node, out.Rule = r.Rejected.Node, r.Rejected.Rule
	}
	if r.Advice == nil {
		return out
	}
	for i := range r.Advice.Payers[:min(len(r.Advice.Payers), rqv1.RefusalPayers)] {
		out.Payers = append(out.Payers, r.Advice.Payers[i].published())
	}
	for _, c := range r.Advice.Changes[:min(len(r.Advice.Changes), rqv1.RefusalChanges)] {
		out.Changes = append(out.Changes, rqv1.RefusalChange{What: c.What, GPUs: int32(c.GPUs)})
	}
	return out
}

func (p *Payer) published() rqv1.RefusalPayer {
	out := rqv1.RefusalPayer{Step: int32(p.Step) + 1, Relation: p.Relation, Owner: p.Owner, Budget: p.Key.Budget,
		Envelope: p.Key.Envelope,
		GPUs:     int32(p.GPUs), Limit: limitOf(p.Limit), Stops: p.Refusal}
	if out.Limit != nil {
		out.Stops = p.Limit.String()
		if p.Limit.Left > 0 && p.GPUs == 0 {
			out.Stops += ", less than the next pod takes"
		}
	}
	return out
}

// limitOf counts GPU-hours in whole ones.
func limitOf(l budget.Limit) *rqv1.RefusalLimit {
	if l.Kind == "" {
		return nil
	}
	out := &rqv1.RefusalLimit{Kind: string(l.Kind), Cap: l.Cap, Max: l.Max, Left: l.Left}
	if l.Hours() {
		out.Max, out.Left = l.Max/int64(budget.GPUHour), l.Left/int64(budget.GPUHour)
	}
	if o := l.Owed; o.Amount > 0 {
		out.Reserved = &rqv1.ReservedLimit{Amount: o.Amount, Run: o.To, Others: int32(o.Others)}
		if at := metav1.NewTime(o.At); !o.At.IsZero() {
			out.Reserved.At = &at
		} else if o.Meanwhile {
			out.Reserved.Within = &metav1.Duration{Duration: o.Within}
		}
		if l.Hours() {
			out.Reserved.Amount = (o.Amount + int64(budget.GPUHour) - 1) / int64(budget.GPUHour)
		}
	}
	return out
}
