package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/news"
)

const (
	// eventsAhead is how many events may wait to be written: more are dropped, since they are no part of any decision.
	// eventWriters is how many are written at once.
	eventsAhead, eventWriters = 10000, 4
	// eventTries is how often an event is tried that the API server does not take now, and eventPause how long after:
	// what is told while a control plane is upgraded is not lost.
	eventTries, eventPause = 12, 10 * time.Second
	// longestNote is how many bytes the API takes in the note of an event: it refuses a longer one.
	longestNote = 1024
)

// reporter makes events of what is told. client-go's own recorder takes two things that are told of one object for one
// reason for the same, whatever they say, and what is told of two versions of an object never.
type reporter struct {
	kube     kubernetes.Interface
	clock    clock.Clock
	name     string
	instance string
	ahead    chan *news.Event

	mu   sync.Mutex
	desk *news.Desk
}

// newReporter returns what makes events in the name of a scheduler.
func newReporter(kube kubernetes.Interface, clock clock.Clock, name string) *reporter {
	host, _ := os.Hostname()
	return &reporter{kube: kube, clock: clock, name: name, instance: name + "-" + host,
		ahead: make(chan *news.Event, eventsAhead), desk: news.NewDesk()}
}

// Eventf tells something of an object, which says of what kind it is.
func (r *reporter) Eventf(regarding, _ runtime.Object, kind, reason, action, note string, args ...any) {
	object, err := meta.Accessor(regarding)
	if err != nil {
		return // it is none
	}
	of := regarding.GetObjectKind().GroupVersionKind()
	fact := news.Fact{Type: kind, Reason: reason, Action: action, Note: fmt.Sprintf(note, args...),
		Regarding: corev1.ObjectReference{APIVersion: of.GroupVersion().String(), Kind: of.Kind,
			Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID()}}
	r.mu.Lock()
	event := r.desk.Tell(fact, r.clock.Now())
	r.mu.Unlock()
	if event != nil {
		r.send(event)
	}
}

// send has an event written soon.
func (r *reporter) send(event *news.Event) {
	select {
	case r.ahead <- event:
	default:
		klog.Background().Error(nil, "Too many events wait to be written; this one is dropped", "reason", event.Reason,
			"note", event.Note)
	}
}

// watch writes events until the context ends.
func (r *reporter) watch(ctx context.Context) {
	for range eventWriters {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case event := <-r.ahead:
					r.write(ctx, event, 1)
				}
			}
		}()
	}
	every(ctx, r.clock, time.Second, func() {
		r.mu.Lock()
		due := r.desk.Due(r.clock.Now())
		r.mu.Unlock()
		for _, event := range due {
			r.send(event)
		}
	})
}

// write writes an event, again after a while if the API server has no time for it.
func (r *reporter) write(ctx context.Context, event *news.Event, try int) {
	switch err := r.store(ctx, event); {
	case err == nil || apierrors.IsAlreadyExists(err): // it was stored, and the answer was lost
	case try == eventTries || refusedFor(err):
		klog.FromContext(ctx).Error(err, "An event could not be written", "reason", event.Reason, "note", event.Note)
	default:
		go func() {
			if pause(ctx, r.clock, eventPause) {
				r.write(ctx, event, try+1)
			}
		}()
	}
}

// refusedFor reports whether an event would be refused the next time too: its namespace is being deleted, for one.
func refusedFor(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) ||
		apierrors.IsBadRequest(err)
}

// store writes that something was told, or how often it was told by now.
func (r *reporter) store(ctx context.Context, event *news.Event) error {
	object := r.object(event)
	events := r.kube.EventsV1().Events(object.Namespace)
	if object.Series != nil {
		patch, err := json.Marshal(map[string]any{"series": object.Series})
		if err != nil {
			return fmt.Errorf("event %s: %w", object.Name, err)
		}
		_, err = events.Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			return err
		} // the API server keeps events for an hour
	}
	_, err := events.Create(ctx, object, metav1.CreateOptions{})
	return err
}

// object returns an event as the API has it.
func (r *reporter) object(event *news.Event) *eventsv1.Event {
	out := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: event.Regarding.Namespace, Name: eventName(event)},
		EventTime:  metav1.NewMicroTime(event.First), ReportingController: r.name, ReportingInstance: r.instance,
		Action: event.Action, Reason: event.Reason, Regarding: event.Regarding, Type: event.Type,
		Note: lifecycle.Shortened(event.Note, longestNote),
	}
	if out.Namespace == "" {
		out.Namespace = metav1.NamespaceDefault
	}
	if event.Count > 1 {
		out.Series = &eventsv1.EventSeries{Count: event.Count, LastObservedTime: metav1.NewMicroTime(event.Last)}
	}
	return out
}

// eventName returns the name of an event: its object's, as much of it as there is room for, and its ID.
func eventName(event *news.Event) string {
	id := fmt.Sprintf(".%x", event.ID)
	name := event.Regarding.Name
	return strings.TrimRight(name[:min(len(name), validation.DNS1123SubdomainMaxLength-len(id))], "-.") + id
}
