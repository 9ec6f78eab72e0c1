package dashboard

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// part is what is watched of one kind.
type part struct {
	kind
	resource schema.GroupResource
	lacks    string    // what may not be read of it, or nothing
	sources  []*source // one for all namespaces, or one for each that may be read
}

// adapt watches what may be read of a kind now: in all namespaces, or in some. What has been watched goes on unless it
// is in what is watched from now on; whether it may still be read, it finds out by itself.
func (w *watched) adapt(ctx context.Context, c client.WithWatch, p *part, namespaces []string, lacks string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.lacks = lacks
	everywhere := func(namespace string) bool { return namespace == "" }
	if slices.ContainsFunc(namespaces, everywhere) != slices.ContainsFunc(p.namespaces(), everywhere) {
		for _, s := range p.sources {
			w.end(s)
		}
		p.sources = nil
	}
	for _, namespace := range namespaces {
		if !slices.Contains(p.namespaces(), namespace) {
			p.sources = append(p.sources, w.begin(ctx, c, p, namespace))
		}
	}
}

func (p *part) namespaces() (out []string) {
	for _, s := range p.sources {
		out = append(out, s.namespace)
	}
	return out
}

// begin watches a kind in a namespace, or in all of them.
func (w *watched) begin(ctx context.Context, c client.WithWatch, p *part, namespace string) *source {
	ctx, cancel := context.WithCancel(ctx)
	s := &source{client: c, namespace: namespace, what: p.what, resource: p.resource, list: p.list, fields: p.fields,
		in: &store{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), changed: w.touch}, cancel: cancel}
	if namespace != "" {
		s.what += " of namespace " + namespace
	}
	s.told = func(err error) { w.told(s, err) }
	reflector := cache.NewReflectorWithOptions(s.listWatch(), p.object, s.in, cache.ReflectorOptions{
		Name: s.what, Logger: &silent, Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Steps: 5,
			Cap: 5 * time.Second, Jitter: 0.2}})
	go reflector.RunWithContext(klog.NewContext(ctx, silent))
	return s
}

// end ceases to watch a source. The lock is held.
func (w *watched) end(s *source) {
	s.ended = true
	s.cancel()
	delete(w.broken, s.what)
	delete(w.lost, s.what)
}

// hasLost reports whether something of a kind may not be read any more. The lock is held.
func (w *watched) hasLost(p *part) bool {
	return slices.ContainsFunc(p.sources, func(s *source) bool { return w.lost[s.what] })
}

// askGained asks what may be read of each kind of which not all is read, and has that be watched.
func (w *watched) askGained(ctx context.Context, s *session.Session, c client.WithWatch) {
	afresh := &session.Session{IOStreams: s.IOStreams, Flags: s.Flags, Now: s.Now} // it knows of no namespaces yet
	for _, p := range w.parts {
		w.mu.Lock()
		all := p.lacks == "" && !w.hasLost(p)
		w.mu.Unlock()
		if all {
			continue
		}
		namespaces, lacks, err := afresh.Readable(ctx, c, p.object, p.list)
		if err == nil && len(namespaces) > 0 {
			w.adapt(ctx, c, p, namespaces, lacks)
			w.touch()
		}
	}
}

// sources are all that is watched.
func (w *watched) sources() (out []*source) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.parts {
		out = append(out, p.sources...)
	}
	return out
}

// all are the objects of one kind.
func all[T client.Object](w *watched) []T {
	w.mu.Lock()
	var stores []*store
	for _, p := range w.parts {
		if _, is := p.object.(T); is {
			for _, s := range p.sources {
				stores = append(stores, s.in)
			}
		}
	}
	w.mu.Unlock()
	var out []T
	for _, s := range stores {
		for _, object := range s.List() {
			out = append(out, object.(T))
		}
	}
	return out
}
