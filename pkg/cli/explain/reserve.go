package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// reserve adds what Reservations promise to the Run, and what those of others do to it, and orders the story.
func (e *explanation) reserve(run *rqv1.Run, from evidence) {
	slices.SortFunc(from.reservations, func(a, b rqv1.Reservation) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Name, b.Name))
	})
	e.AtRisk, e.AtRiskTotal = view.RisksOf(run, from.now), run.Status.AtRiskTotal
	for i := range from.reservations {
		r := &from.reservations[i]
		if view.IsFor(r, run) {
			e.Reservations = append(e.Reservations, view.PromiseOf(r, from.now))
			e.Story = append(e.Story, momentsOf(r, e.At)...)
		}
		for _, cut := range r.Status.Cuts {
			if cut.UID == run.UID {
				e.cut(r, cut)
			}
		}
		for j := range e.AtRisk {
			if e.AtRisk[j].Reservation == r.Namespace+"/"+r.Name {
				e.AtRisk[j].For = view.FullName(r.Spec.RunRef)
			}
		}
	}
	for i := range e.AtRisk {
		e.Story = append(e.Story, moment{Time: e.AtRisk[i].At, What: e.AtRisk[i].InWords("")})
	}
	slices.SortStableFunc(e.Story, func(a, b moment) int {
		return cmp.Or(a.Time.Truncate(time.Second).Compare(b.Time.Truncate(time.Second)), stage(a)-stage(b))
	})
}

// stage orders moments within a second, which is all that most of them are known to.
func stage(m moment) int {
	order := []string{"submitted", "not started", "reserved", "activated", "started", "released", "canceled"}
	if at := slices.Index(order, m.What); at >= 0 {
		return at
	}
	return len(order)
}

// cut adds what another Run's Reservation did to this Run, and how to check that it was fair.
func (e *explanation) cut(r *rqv1.Reservation, cut rqv1.Cut) {
	c := cutBy{Time: activated(r), Action: cut.Action, GPUs: cut.GPUs, Width: cut.Width,
		Reservation: r.Namespace + "/" + r.Name, For: view.FullName(r.Spec.RunRef)}
	e.CutBy = append(e.CutBy, c)
	e.Story = append(e.Story, moment{Time: c.Time, What: view.CutInWords(cut),
		Message: fmt.Sprintf("%d GPUs freed for Run %s, Reservation %s; check it: kubectl runs explain --verify %s -n %s",
			cut.GPUs, c.For, r.Name, r.Name, r.Namespace)})
}

// momentsOf is the life of a Reservation: made, activated, ended, or the start that is to come.
func momentsOf(r *rqv1.Reservation, now metav1.Time) []moment {
	name := "Reservation " + r.Name
	made := moment{Time: r.CreationTimestamp, What: "reserved", Message: name}
	confidence := ""
	if f := r.Status.Forecast; f != nil { // as it is by now
		confidence = f.Confidence
	}
	moments := []moment{made}
	if r.Status.ActivatedAt != nil {
		moments = append(moments, moment{Time: activated(r), What: "activated",
			Message: strings.Join(append([]string{name}, view.CutsInWords(r.Status.Cuts)...), "; ")})
	}
	switch {
	case r.Status.EndedAt != nil:
		if r.Status.Reason != "" {
			name += ": " + r.Status.Reason
		}
		moments = append(moments, moment{Time: *r.Status.EndedAt, What: strings.ToLower(string(view.StateOf(r))),
			Message: name})
	case !view.HasEnded(r) && r.Spec.EarliestStart.After(now.Time):
		moments = append(moments, moment{Time: r.Spec.EarliestStart, What: "starts", Reason: confidence, Message: name})
	}
	return moments
}

// activated is when the Reservation's cuts began.
func activated(r *rqv1.Reservation) metav1.Time {
	if r.Status.ActivatedAt == nil {
		return r.Spec.EarliestStart
	}
	return metav1.Time{Time: r.Status.ActivatedAt.Time}
}
