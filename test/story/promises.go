package story

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Promised waits until the latest Reservation of a Run is in a state, for a reason that holds texts, and returns it.
func (s *Teller) Promised(run string, state rqv1.ReservationState, texts ...string) *rqv1.Reservation {
	s.T.Helper()
	var out *rqv1.Reservation
	s.Until(fmt.Sprintf("the Reservation of Run %s is to be %s with %q", run, state, texts), func() error {
		all := s.Reservations(run)
		if len(all) == 0 {
			return errors.New("it has none")
		}
		out = all[len(all)-1]
		reason := s.short(out.Status.Reason)
		if out.Status.State != state || slices.ContainsFunc(texts, func(text string) bool {
			return !strings.Contains(reason, text)
		}) {
			return fmt.Errorf("it is %s: %s", out.Status.State, reason)
		}
		return nil
	})
	return out
}

// Reservations returns all Reservations of a Run, the latest last.
func (s *Teller) Reservations(run string) []*rqv1.Reservation {
	return slices.DeleteFunc(s.World().Reservations, func(r *rqv1.Reservation) bool { return r.Spec.RunRef.Name != run })
}

// Told waits until an event of an object has a reason and a text. The object is of a kind and a name.
func (s *Teller) Told(kind, name, reason, text string) {
	s.T.Helper()
	s.Until(fmt.Sprintf("event %s of %s %s", reason, kind, name), func() error {
		var others []string
		for _, e := range s.World().Events {
			if e.Kind != kind || s.short(e.Name) != name {
				continue
			}
			if e.Reason == reason && strings.Contains(s.short(e.Note), text) {
				return nil
			}
			others = append(others, e.Reason+": "+e.Note)
		}
		return fmt.Errorf("there are %q", others)
	})
}

// AtRisk waits until a Run says that a Reservation may cut it, with a probability.
func (s *Teller) AtRisk(run, reservation, probability string) {
	s.T.Helper()
	s.Until(run+" is to be at risk", func() error {
		is := s.Run(run).Status.AtRisk
		for _, risk := range is {
			if risk.Reservation == s.site.Namespace+"/"+reservation && risk.Probability == probability {
				return nil
			}
		}
		return fmt.Errorf("%+v", is)
	})
}

// Count returns how often events about an object have told a text.
func (s *Teller) Count(kind, name, text string) (times int) {
	for _, e := range s.World().Events {
		if e.Kind == kind && s.short(e.Name) == name && strings.Contains(s.short(e.Note), text) {
			times += int(e.Count)
		}
	}
	return times
}

// In is an instant so long from now, in whole seconds as the API keeps them.
func (s *Teller) In(d time.Duration) *metav1.Time {
	return &metav1.Time{Time: s.Now().Add(d).Truncate(time.Second)}
}

// Conflicts tells whom a Reservation may cut, in a line for each: RUN ACTION GPUs PROBABILITY.
func Conflicts(r *rqv1.Reservation) (out []string) {
	for _, c := range r.Status.ConflictSet {
		out = append(out, fmt.Sprintf("%s %s %d %s", c.Run.Name, c.Action, c.GPUs, c.Probability))
	}
	slices.Sort(out)
	return out
}
