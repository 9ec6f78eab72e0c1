package clitest

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/davidlangworthy/jobtree/pkg/published"
)

// Permit has whoever asks be allowed to read these namespaces from now on, or all that there is if it is nil.
func (s *Server) Permit(namespaces []string) {
	s.rights.Lock()
	defer s.rights.Unlock()
	s.Readable = namespaces
}

// mayRead reports whether whoever asks may read what a request is about, or wants to write.
func (s *Server) mayRead(w *wanted) bool {
	s.rights.Lock()
	defer s.rights.Unlock()
	switch {
	case s.Readable == nil || w.verb != "list" && w.verb != "get" && w.verb != "watch":
		return true
	case w.resource == "configmaps":
		return w.name == published.ConfigMap
	case slices.Contains([]string{"reservations", "budgets", "priorityclasses"}, w.resource):
		return true
	case w.resource == "namespaces":
		return slices.Contains(s.Readable, w.name)
	}
	return w.namespace != "" && slices.Contains(s.Readable, w.namespace)
}

// allows reports whether a request would be allowed that a SelfSubjectAccessReview asks about.
func (s *Server) allows(review *unstructured.Unstructured) bool {
	field := func(name string) string {
		value, _, _ := unstructured.NestedString(review.Object, "spec", "resourceAttributes", name)
		return value
	}
	w := wanted{verb: field("verb"), resource: field("resource"), namespace: field("namespace")}
	return s.mayRead(&w) && (s.Before == nil || !apierrors.IsForbidden(s.Before(w.verb+" "+w.resource)))
}

// forbidden is the refusal of a request, as RBAC words it.
func (w *wanted) forbidden() error {
	where := "at the cluster scope"
	if w.namespace != "" {
		where = fmt.Sprintf("in the namespace %q", w.namespace)
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: w.resource}, w.name,
		fmt.Errorf("User %q cannot %s resource %q %s", "ada", w.verb, w.resource, where))
}
