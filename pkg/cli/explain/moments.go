package explain

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/ending"
)

// changing are conditions whose messages are about the present while they are True: they may have said something else
// when they became so.
var changing = []string{rqv1.ConditionAtRisk, rqv1.ConditionOverdraft, rqv1.ConditionNodesHeldBack,
	rqv1.ConditionMaintenanceAhead, rqv1.ConditionDrainWaits, rqv1.ConditionSaveIgnored}

// momentOf is when a condition became as it is, with what was said then: where its message may have changed since, that
// is what an Event of that time says, or nothing.
func momentOf(c *metav1.Condition, events []corev1.Event) moment {
	m := moment{Time: c.LastTransitionTime, What: inWords(c.Type), Reason: c.Reason, Message: c.Message}
	holds := c.Status == metav1.ConditionTrue
	switch {
	case c.Type == rqv1.ConditionStarted && !holds: // its Events are named after the phase
		m.Reason, m.Message = "", toldAt(events, string(rqv1.RunPending), c.LastTransitionTime.Time)
	case c.Type == rqv1.ConditionStarted && c.Reason != "Started": // what has become of the Run since, at another time
		m.Reason, m.Message = "", ""
	case holds && slices.Contains(changing, c.Type):
		m.Message = toldAt(events, c.Reason, c.LastTransitionTime.Time)
		if m.Message == "" {
			m.Reason = ""
		}
	}
	switch {
	case holds:
	case c.Type == rqv1.ConditionStarted || c.Type == rqv1.ConditionAtRisk:
		m.What = "not " + m.What
	default:
		m.What = "no longer: " + m.What
	}
	return m
}

// humps are the beginnings of the words in a name such as DrainWaits.
var humps = regexp.MustCompile(`\B[A-Z]`)

// inWords is the type of a condition as people say it, such as drain waits.
func inWords(kind string) string {
	return strings.ToLower(humps.ReplaceAllString(kind, " $0"))
}

// withoutRepetition is the moment, for people, without a reason that says what has been said.
func (m moment) withoutRepetition() moment {
	switch m.Reason {
	case "Started", "Reserved", "Safe":
		m.Reason = ""
	case string(rqv1.RunCompleted), string(rqv1.RunFailed):
		m.What, m.Reason = strings.ToLower(m.Reason), ""
	}
	return m
}

// atOnce is how long after something has become so the Event about it may be told.
const atOnce = 2 * time.Second

// toldAt is what the first Event of a reason said at an instant, which is known in whole seconds; empty where there is
// none.
func toldAt(events []corev1.Event, reason string, at time.Time) string {
	message, first := "", at.Add(atOnce)
	for i := range events {
		e := &events[i]
		told := e.FirstTimestamp.Time
		if !e.EventTime.IsZero() {
			told = e.EventTime.Time
		}
		if e.Reason == reason && !told.Before(at) && told.Before(first) {
			message, first = e.Message, told
		}
	}
	return message
}

// storyOf lists the moments that the Run itself records. When the scheduler deletes one that leaves that to its
// configuration, it does not say.
func storyOf(run *rqv1.Run, events []corev1.Event, now time.Time) []moment {
	story := []moment{{Time: run.CreationTimestamp, What: "submitted"}}
	for _, c := range run.Status.Conditions {
		if c.Type == rqv1.ConditionFinished && c.Status != metav1.ConditionTrue {
			continue // that a Run has not ended is no moment of its life
		}
		story = append(story, momentOf(&c, events))
	}
	for i := range run.Status.Deaths {
		d := &run.Status.Deaths[i]
		story = append(story, moment{Time: d.At, What: fmt.Sprintf("rank %d ended on node %s", d.Index, d.Node),
			Reason: string(d.Cause), Message: ending.Words(d)})
	}
	if at, goes := run.ExpiresAt(0); goes && at.After(now) && run.DeletionTimestamp == nil {
		story = append(story, moment{Time: metav1.NewTime(at), What: "deleted",
			Message: fmt.Sprintf("its ttlSecondsAfterFinished is %d", *run.Spec.TTLSecondsAfterFinished)})
	}
	if run.DeletionTimestamp != nil {
		story = append(story, moment{Time: *run.DeletionTimestamp, What: "deleted", Message: "waits for its pods to end"})
	}
	return story
}

// eventsOf orders Events by time, whichever of the two Event APIs wrote them. Within a second the order is that of
// their names, which end in the instant of their creation.
func eventsOf(events []corev1.Event) []event {
	slices.SortFunc(events, func(a, b corev1.Event) int {
		return cmp.Or(lastSeen(&a).Truncate(time.Second).Compare(lastSeen(&b).Truncate(time.Second)),
			strings.Compare(a.Name, b.Name))
	})
	var told []event
	for i := range events {
		e := &events[i]
		count := max(e.Count, 1)
		if e.Series != nil {
			count = e.Series.Count
		}
		told = append(told, event{Time: lastSeen(e), Type: e.Type, Reason: e.Reason, Message: e.Message, Count: count})
	}
	return told
}

func lastSeen(e *corev1.Event) metav1.Time {
	switch {
	case e.Series != nil:
		return metav1.Time{Time: e.Series.LastObservedTime.Time}
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	}
	return metav1.Time{Time: e.EventTime.Time}
}
