package controllers

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// longestNote is how many bytes the API takes in the note of an event: it drops the event of a longer one.
const longestNote = 1024

// shortNotes has every event be taken, however much there is to say: what it is about says the rest.
type shortNotes struct{ events.EventRecorder }

func (n shortNotes) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	text := lifecycle.Shortened(fmt.Sprintf(note, args...), longestNote)
	n.EventRecorder.Eventf(regarding, related, kind, reason, action, "%s", text)
}
