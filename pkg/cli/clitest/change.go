package clitest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// create stores what is sent, or says who asks.
func (s *Server) create(r *http.Request, w wanted, dry bool) (any, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if w.resource == "selfsubjectreviews" {
		return map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
			"status": map[string]any{"userInfo": map[string]any{"username": cmp.Or(s.Asker, "ada")}}}, nil
	}
	if w.resource == "selfsubjectrulesreviews" {
		rule := map[string]any{"verbs": []string{"use"}, "apiGroups": []string{"rq.davidlangworthy.io"},
			"resources": []string{"owners"}, "resourceNames": s.MayUse}
		return map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
			"status": map[string]any{"resourceRules": []any{rule}}}, nil
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &object.Object); err != nil { // the core's own kinds come in binary
		decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(decoded)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &object.Object); err != nil {
			return nil, err
		}
	}
	if w.resource == "localsubjectaccessreviews" {
		owner, _, _ := unstructured.NestedString(object.Object, "spec", "resourceAttributes", "name")
		object.Object["status"] = map[string]any{"allowed": owner != s.NobodyUses}
		return object, nil
	}
	if w.resource == "selfsubjectaccessreviews" {
		object.Object["status"] = map[string]any{"allowed": s.allows(object)}
		return object, nil
	}
	if object.GetName() == "" {
		s.version++
		object.SetName(fmt.Sprint(object.GetGenerateName(), s.version))
	}
	if !dry && object.GetUID() == "" {
		s.version++
		object.SetUID(types.UID(fmt.Sprintf("%s-uid-%d", object.GetName(), s.version)))
	}
	if s.find(object) >= 0 {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: w.resource}, object.GetName())
	}
	if !dry {
		s.store(object)
	}
	return object, nil
}

// delete has an object be gone, if its UID is the one that is meant.
func (s *Server) delete(r *http.Request, object *unstructured.Unstructured) (any, error) {
	var options metav1.DeleteOptions
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_ = json.Unmarshal(body, &options) // what comes in binary, of the core's own kinds, has no conditions
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != object.GetUID() {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: plural(object.GetKind())}, object.GetName(),
			errors.New("the UID in the precondition is another"))
	}
	s.remove(object)
	return object, nil
}

// patch merges what is sent into an object. A UID in it is to be that of the object.
func (s *Server) patch(r *http.Request, object *unstructured.Unstructured, dry bool) (any, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	change := map[string]any{}
	if err := json.Unmarshal(body, &change); err != nil {
		return nil, err
	}
	patched := object.DeepCopy()
	merge(patched.Object, change)
	if patched.GetUID() != object.GetUID() {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: plural(object.GetKind())}, object.GetName(),
			errors.New("the UID in the precondition is another"))
	}
	if !dry {
		s.store(patched)
	}
	return patched, nil
}

// merge is JSON merge patch (RFC 7386).
func merge(into, change map[string]any) {
	for key, value := range change {
		inner, nested := value.(map[string]any)
		was, had := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case nested && had:
			merge(was, inner)
		default:
			into[key] = value
		}
	}
}

// watch sends what has changed since the version that is asked for, and what changes, until it is broken.
func (s *Server) watch(out http.ResponseWriter, r *http.Request, w wanted) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	stop := make(chan struct{})
	s.mu.Lock()
	gone := from < s.since
	s.stop = append(s.stop, stop)
	s.mu.Unlock()
	if gone {
		refuse(out, apierrors.NewResourceExpired("too old resource version"))
		return
	}
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(http.StatusOK)
	encoder := json.NewEncoder(out)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		s.mu.Lock()
		for _, c := range s.changes {
			if c.version > from && w.has(c.object) {
				_ = encoder.Encode(map[string]any{"type": c.kind, "object": c.object})
			}
		}
		from = max(from, s.version)
		s.mu.Unlock()
		out.(http.Flusher).Flush()
		select {
		case <-look.C:
		case <-stop:
			return
		case <-r.Context().Done():
			return
		}
	}
}
