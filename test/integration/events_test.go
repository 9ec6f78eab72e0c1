package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestEventsCountUp has a Run of 16 GPUs wait for one of two things in turn: each of them is an event, and the second
// time is counted in it. That it runs then is no event.
func TestEventsCountUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 8)
	paid := func(gpus int32) {
		edit(s, s.budget(s.namespace, 0), func(b *rqv1.Budget) { b.Spec.Envelopes[0].Concurrency = gpus })
	}
	s.submit("waits", 16, inPods(4))
	for _, gpus := range []int32{8, 4, 8, 4} {
		paid(gpus)
		s.await("waits", rqv1.RunPending, fmt.Sprintf("short by %d", 16-gpus))
	}
	eventually(t, "the events of the Run", func() error {
		want := map[string]int32{"Pending: short by 8": 2, "Pending: short by 12": 2}
		if diff := cmp.Diff(want, s.eventsOf("Run", "waits", "short by 8", "short by 12")); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
	paid(16)
	s.await("waits", rqv1.RunRunning, "bound 16 GPUs")
	s.settled()
	if got := s.eventsOf("Run", "waits", "bound"); len(got) > 0 {
		t.Errorf("that the Run has started is told again: %v", got)
	}
}

// eventsOf returns how often events about an object have told each of some texts, by reason and text.
func (s *site) eventsOf(kind, name string, texts ...string) map[string]int32 {
	s.t.Helper()
	var events eventsv1.EventList
	err := s.api.List(s.t.Context(), &events, client.InNamespace(s.namespace),
		client.MatchingFields{"regarding.kind": kind, "regarding.name": name})
	if err != nil {
		s.t.Fatal(err)
	}
	count := map[string]int32{}
	for i := range events.Items {
		e := &events.Items[i]
		for _, text := range texts {
			times := int32(1)
			if e.Series != nil {
				times = e.Series.Count
			}
			if strings.HasSuffix(e.Note, text) || strings.Contains(e.Note, text+" ") || strings.Contains(e.Note, text+";") {
				count[e.Reason+": "+text] += times
			}
		}
	}
	return count
}
