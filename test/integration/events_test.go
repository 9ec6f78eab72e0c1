package integration

import (
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
