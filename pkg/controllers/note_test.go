package controllers

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestALongMessageIsToldInAnEvent: the API drops an event whose note is too long.
func TestALongMessageIsToldInAnEvent(t *testing.T) {
	recorder := events.NewFakeRecorder(2)
	s := statusWriter{events: shortNotes{recorder}}
	long := "short by 8 of 16 GPUs (" + strings.Repeat("sponsor org:ö does not lend, at 100%; ", 40)
	for _, message := range []string{long, "at 100%"} {
		s.tell(&rqv1.Run{}, &rqv1.RunStatus{Phase: rqv1.RunPending, Message: message})
	}
	got := told(recorder)
	note := strings.TrimPrefix(got[0], "Normal Pending ")
	if cut := strings.TrimSuffix(note, "…"); len(note) > longestNote || !strings.HasPrefix(long, cut) || cut == "" {
		t.Errorf("a note of %d bytes: %s", len(note), note)
	}
	if got[1] != "Normal Pending at 100%" {
		t.Errorf("a short message is told as %q", got[1])
	}
}
