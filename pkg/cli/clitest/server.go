package clitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// Server is an API server that holds a few objects, and is as bad as a test wants it.
type Server struct {
	URL string
	// Before, if set, is called with each request, such as "patch runs/big", before it is answered: what it returns is
	// the answer unless it is nil.
	Before func(request string) error
	// Readable, if not nil, are the only namespaces that whoever asks may read, with "" for the list of them. Of what is
	// elsewhere only what everybody may read can be read. Permit changes them later.
	Readable []string
	// Stream, if set, answers a request for a stream of a pod, such as its log.
	Stream func(out http.ResponseWriter, r *http.Request, pod, stream string)
	// MayUse are the owners as whom whoever asks may spend.
	MayUse []string
	// Asker is the name of whoever asks; ada by default.
	Asker string
	// NobodyUses is an owner whom no service account may spend as.
	NobodyUses string

	t       testing.TB
	rights  sync.Mutex // of what may be read
	mu      sync.Mutex
	version int
	objects []*unstructured.Unstructured
	changes []change
	since   int             // the version from which on changes are known
	stop    []chan struct{} // of watches that are open
	asked   []string
}

// change is an object as it was changed.
type change struct {
	kind    string
	version int
	object  *unstructured.Unstructured
}

// NewServer returns an API server with some objects.
func NewServer(t testing.TB, objects ...client.Object) *Server {
	s := &Server{t: t}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.BreakWatches()
		server.CloseClientConnections()
		server.Close()
	})
	s.URL = server.URL
	s.Set(objects...)
	return s
}

// Set stores objects as they are now.
func (s *Server) Set(objects ...client.Object) {
	s.t.Helper()
	for _, object := range objects {
		written, err := session.AsWritten(object)
		if err != nil {
			s.t.Fatal(err)
		}
		s.mu.Lock()
		s.store(written.DeepCopy())
		s.mu.Unlock()
	}
}

// Delete has objects be gone.
func (s *Server) Delete(objects ...client.Object) {
	s.t.Helper()
	for _, object := range objects {
		written, err := session.AsWritten(object)
		if err != nil {
			s.t.Fatal(err)
		}
		s.mu.Lock()
		s.remove(written)
		s.mu.Unlock()
	}
}

// Get returns an object's JSON field as text, such as metadata.name; empty when there is none.
func (s *Server) Get(object client.Object, path ...string) string {
	written, err := session.AsWritten(object)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(written); i >= 0 {
		value, found, _ := unstructured.NestedFieldNoCopy(s.objects[i].Object, path...)
		if found {
			return fmt.Sprint(value)
		}
	}
	return ""
}

// Written returns the objects of a kind as they are stored.
func (s *Server) Written(kind string) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*unstructured.Unstructured
	for _, object := range s.objects {
		if object.GetKind() == kind {
			out = append(out, object.DeepCopy())
		}
	}
	return out
}

// BreakWatches ends all watches, as a restart does.
func (s *Server) BreakWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stop := range s.stop {
		close(stop)
	}
	s.stop = nil
}

// Forget has the changes until now be too old to watch from.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.since = s.version
}

// Asked returns the requests until now that begin with some text.
func (s *Server) Asked(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.asked), func(r string) bool { return !strings.HasPrefix(r, prefix) })
}

// Forbidden is the refusal of a verb on a resource, as RBAC words it.
func Forbidden(verb, resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "",
		fmt.Errorf("User %q cannot %s resource %q in the namespace %q", "ada", verb, resource, "rai"))
}

// NotServed is the answer of an API server that does not know the kind.
var NotServed = errors.New("not served")

func plural(kind string) string {
	if strings.HasSuffix(kind, "s") {
		kind += "e"
	}
	return strings.ToLower(kind) + "s"
}

func (s *Server) find(o *unstructured.Unstructured) int {
	return slices.IndexFunc(s.objects, func(x *unstructured.Unstructured) bool {
		return x.GetKind() == o.GetKind() && x.GetNamespace() == o.GetNamespace() && x.GetName() == o.GetName()
	})
}

func (s *Server) store(o *unstructured.Unstructured) {
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
	if i := s.find(o); i >= 0 {
		if o.GetUID() == "" {
			o.SetUID(s.objects[i].GetUID()) // it stays the one that it is
		}
		s.objects[i] = o
		s.changed("MODIFIED", o)
		return
	}
	s.objects = append(s.objects, o)
	s.changed("ADDED", o)
}

func (s *Server) remove(o *unstructured.Unstructured) {
	i := s.find(o)
	if i < 0 {
		return
	}
	s.version++
	gone := s.objects[i].DeepCopy()
	gone.SetResourceVersion(strconv.Itoa(s.version))
	s.objects = slices.Delete(s.objects, i, i+1)
	s.changed("DELETED", gone)
}

func (s *Server) changed(kind string, o *unstructured.Unstructured) {
	s.changes = append(s.changes, change{kind, s.version, o.DeepCopy()})
}

// wanted is what a request is about.
type wanted struct {
	verb, resource, namespace, name string
	stream                          string // of a pod
	labels                          labels.Selector
	fields                          fields.Selector
}

func parse(r *http.Request) wanted {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	path = path[min(len(path), map[string]int{"api": 2, "apis": 3}[path[0]]):]
	w := wanted{verb: map[string]string{"GET": "list", "POST": "create", "PATCH": "patch", "DELETE": "delete"}[r.Method]}
	if len(path) > 2 && path[0] == "namespaces" {
		w.namespace, path = path[1], path[2:]
	}
	w.resource = path[0]
	if len(path) > 1 {
		w.name = path[1]
	}
	if len(path) > 2 {
		w.stream = path[2]
	}
	switch query := r.URL.Query(); {
	case r.Method == "GET" && w.name != "":
		w.verb = "get"
	case query.Get("watch") != "":
		w.verb = "watch"
	}
	w.labels, _ = labels.Parse(r.URL.Query().Get("labelSelector"))
	w.fields, _ = fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	return w
}

// has says whether the request is about an object.
func (w *wanted) has(o *unstructured.Unstructured) bool {
	return plural(o.GetKind()) == w.resource && (w.namespace == "" || o.GetNamespace() == w.namespace) &&
		(w.name == "" || o.GetName() == w.name) && w.labels.Matches(labels.Set(o.GetLabels())) &&
		w.fields.Matches(fieldsOf{o})
}

// fieldsOf are the fields of an object that a selector names.
type fieldsOf struct{ *unstructured.Unstructured }

func (f fieldsOf) Has(path string) bool { return f.Get(path) != "" }

func (f fieldsOf) Get(path string) string {
	value, found, _ := unstructured.NestedFieldNoCopy(f.Object, strings.Split(path, ".")...)
	if !found {
		return ""
	}
	return fmt.Sprint(value)
}

func (s *Server) serve(out http.ResponseWriter, r *http.Request) {
	w := parse(r)
	request := strings.TrimRight(w.verb+" "+w.resource+"/"+w.name+"/"+w.stream, "/")
	s.mu.Lock()
	s.asked = append(s.asked, request)
	s.mu.Unlock()
	if s.Before != nil {
		if err := s.Before(request); err != nil {
			refuse(out, err)
			return
		}
	}
	if !s.mayRead(&w) {
		refuse(out, w.forbidden())
		return
	}
	if w.stream != "" && s.Stream != nil {
		s.Stream(out, r, w.name, w.stream)
		return
	}
	if w.verb == "watch" {
		s.watch(out, r, w)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer, err := s.answer(r, w); err != nil {
		refuse(out, err)
	} else {
		write(out, http.StatusOK, answer)
	}
}

func refuse(out http.ResponseWriter, err error) {
	if err == NotServed {
		http.Error(out, "404 page not found", http.StatusNotFound)
		return
	}
	status := apierrors.NewInternalError(err).Status()
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	write(out, int(status.Code), status)
}

func write(out http.ResponseWriter, code int, answer any) {
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(code)
	_ = json.NewEncoder(out).Encode(answer) // whoever asked may be gone
}

// answer carries a request out.
func (s *Server) answer(r *http.Request, w wanted) (any, error) {
	dry := r.URL.Query().Get("dryRun") != ""
	if w.verb == "list" {
		return s.list(w, strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList")), nil
	}
	if w.verb == "create" {
		return s.create(r, w, dry)
	}
	i := slices.IndexFunc(s.objects, w.has)
	if i < 0 {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: w.resource}, w.name)
	}
	switch object := s.objects[i]; w.verb {
	case "delete":
		return s.delete(r, object)
	case "patch":
		return s.patch(r, object, dry)
	default:
		return object, nil
	}
}

// list returns the objects, or their metadata as far as that has a kind of its own.
func (s *Server) list(w wanted, partial bool) any {
	items, inOrder := []any{}, slices.Clone(s.objects)
	slices.SortFunc(inOrder, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	for _, o := range inOrder {
		if w.has(o) {
			items = append(items, o)
		}
	}
	kind := map[string]string{"runs": "RunList", "leases": "LeaseList", "budgets": "BudgetList", "nodes": "NodeList",
		"reservations": "ReservationList", "pods": "PodList", "configmaps": "ConfigMapList",
		"events": "EventList", "namespaces": "NamespaceList"}[w.resource]
	version := "rq.davidlangworthy.io/v1"
	if slices.Contains([]string{"nodes", "pods", "configmaps", "events", "namespaces"}, w.resource) {
		version = corev1.SchemeGroupVersion.String()
	}
	if partial {
		kind, version = "PartialObjectMetadataList", metav1.SchemeGroupVersion.String()
	}
	return map[string]any{"apiVersion": version, "kind": kind, "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}}
}
