package dashboard

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// watched is what is read of the cluster and kept up to date.
type watched struct {
	parts  []*part       // what they watch may change
	unread []string      // what else could not be read in the beginning, and why
	dirty  chan struct{} // has a value after a change

	mu     sync.Mutex
	broken map[string]outage // what cannot be read at the moment
	lost   map[string]bool   // what may not be read any more
}

// outage is what keeps something from being read that may be read.
type outage struct {
	since time.Time // the API server has told nothing since
	login bool      // the API server answers, and does not accept who asks, or there is nothing to show it
	why   string    // what the client says of it
}

// kind is one kind of objects.
type kind struct {
	what   string
	object client.Object
	list   client.ObjectList
	fields fields.Selector
}

// kinds are what is watched, what finished pods are like apart.
var kinds = []kind{
	{"nodes", &corev1.Node{}, &corev1.NodeList{}, fields.Everything()},
	{"Runs", &rqv1.Run{}, &rqv1.RunList{}, fields.Everything()},
	{"GPU leases", &rqv1.Lease{}, &rqv1.LeaseList{}, fields.Everything()},
	{"Reservations", &rqv1.Reservation{}, &rqv1.ReservationList{}, fields.Everything()},
	{"Budgets", &rqv1.Budget{}, &rqv1.BudgetList{}, fields.Everything()},
	{"pods", &corev1.Pod{}, &corev1.PodList{}, fields.ParseSelectorOrDie("status.phase!=Succeeded,status.phase!=Failed")},
}

// silent has what goes wrong be told on the page, not in a log.
var silent = logr.Discard()

// watch begins to watch what may be read: in all namespaces, or in those of which it is known that they may be read.
func (d *dashboard) watch(ctx context.Context, c client.WithWatch) (*watched, error) {
	w := &watched{dirty: make(chan struct{}, 1), broken: map[string]outage{}, lost: map[string]bool{}}
	for _, kind := range kinds {
		namespaces, lacks, err := d.Readable(ctx, c, kind.object, kind.list)
		if err != nil {
			return nil, err
		}
		mapped, err := resourceOf(c, kind.object)
		if err != nil {
			return nil, err
		}
		p := &part{kind: kind, resource: mapped}
		w.parts = append(w.parts, p)
		w.adapt(ctx, c, p, namespaces, lacks)
	}
	go w.rights(ctx, d.Session, c)
	return w, nil
}

// resourceOf is the resource that objects of a kind are read as.
func resourceOf(c client.Client, object client.Object) (schema.GroupResource, error) {
	kind, err := c.GroupVersionKindFor(object)
	if err != nil {
		return schema.GroupResource{}, err
	}
	mapped, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return schema.GroupResource{}, err
	}
	return mapped.Resource.GroupResource(), nil
}

// touch says that something has changed.
func (w *watched) touch() {
	select {
	case w.dirty <- struct{}{}:
	default:
	}
}

// told takes note of whether something could be read. What may not be read any more is not shown any more.
func (w *watched) told(of *source, err error) {
	w.mu.Lock()
	if of.ended {
		w.mu.Unlock()
		return
	}
	was, lost := w.broken[of.what], w.lost[of.what]
	delete(w.broken, of.what)
	switch {
	case err == nil:
		of.in.hear()
		delete(w.lost, of.what)
	case apierrors.IsForbidden(err):
		w.lost[of.what] = true
	default:
		out := outageOf(err)
		out.since = of.in.since(out.since)
		if !was.since.IsZero() {
			out.since = was.since
		}
		w.broken[of.what] = out
	}
	is, gone := w.broken[of.what], w.lost[of.what]
	w.mu.Unlock()
	if gone && len(of.in.ListKeys()) > 0 {
		_ = of.in.Replace(nil, "") // it has no way to fail
	}
	if is != was || gone != lost {
		w.touch()
	}
}

// unproven begins what a client says that has found nothing to show the API server: a program that it was to ask for a
// login has failed.
const unproven = "getting credentials: "

// outageOf is an outage that begins with an error.
func outageOf(err error) outage {
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err // the address is that of every request
	}
	return outage{since: time.Now(), why: session.Refusal(err),
		login: apierrors.IsUnauthorized(err) || strings.HasPrefix(err.Error(), unproven)}
}

// notRead says what may not be read.
func (w *watched) notRead() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, p := range w.parts {
		if p.lacks != "" {
			out = append(out, p.what+": "+p.lacks)
		}
	}
	out = append(out, w.unread...)
	for _, what := range slices.Sorted(maps.Keys(w.lost)) {
		out = append(out, what+": you may not read them any more")
	}
	return out
}

// outage returns the one that began first of those that there are.
func (w *watched) outage() (first outage, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.broken {
		if !is || o.since.Before(first.since) {
			first, is = o, true
		}
	}
	return first, is
}

// objects returns what is there now.
func (w *watched) objects() *picture.Objects {
	return &picture.Objects{Nodes: all[*corev1.Node](w), Runs: all[*rqv1.Run](w), Leases: all[*rqv1.Lease](w),
		Reservations: all[*rqv1.Reservation](w), Budgets: all[*rqv1.Budget](w), Pods: all[*corev1.Pod](w)}
}

// source reads one kind of object in one namespace, or in all of them.
type source struct {
	client    client.WithWatch
	namespace string
	what      string
	resource  schema.GroupResource
	list      client.ObjectList
	fields    fields.Selector
	in        *store
	told      func(err error)
	door      door
	cancel    context.CancelFunc
	ended     bool // nothing that it tells counts any more; guarded by the lock of what is watched
}

// plainly lists before it watches: a list of a large ledger comes from the API server's cache in one answer.
type plainly struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported has the reflector list.
func (plainly) IsWatchListSemanticsUnSupported() bool { return true }

func (s *source) listWatch() cache.ListerWatcher {
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		into := s.list.DeepCopyObject().(client.ObjectList)
		err := s.client.List(ctx, into, s.options(options)...)
		if err == nil {
			s.door.listed()
		}
		s.told(err)
		return into, err
	}
	// Whether something may be read, lists tell: who may list and not watch is shown a list after the other.
	watch := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		into := s.list.DeepCopyObject().(client.ObjectList)
		w, err := s.client.Watch(ctx, into, s.options(options)...)
		if !apierrors.IsForbidden(err) {
			s.told(err)
		}
		if err == nil && !s.door.opened(w) {
			w.Stop()
			return nil, s.refused()
		}
		return w, err
	}
	return plainly{&cache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: watch}}
}

func (s *source) options(raw metav1.ListOptions) []client.ListOption {
	raw.FieldSelector = s.fields.String()
	return []client.ListOption{&client.ListOptions{Namespace: s.namespace, FieldSelector: s.fields, Raw: &raw}}
}
