package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/ending"
)

// storyOf lists the moments that the Run itself records. When the scheduler deletes one that leaves that to its
// configuration, it does not say.
func storyOf(run *rqv1.Run, now time.Time) []moment {
	story := []moment{{Time: run.CreationTimestamp, What: "submitted"}}
	for _, c := range run.Status.Conditions {
		if c.Type == rqv1.ConditionFinished && c.Status != metav1.ConditionTrue {
			continue // that a Run has not ended is no moment of its life
		}
		what := strings.ToLower(c.Type)
		if c.Type == rqv1.ConditionAtRisk {
			what = "at risk"
		}
		if c.Status != metav1.ConditionTrue {
			what = "not " + what
		}
		if what == "started" && c.Reason != "Started" { // what has become of the Run since, at another time
			c.Reason, c.Message = "", ""
		}
		story = append(story, moment{Time: c.LastTransitionTime, What: what, Reason: c.Reason, Message: c.Message})
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
