package manifest

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// RefusedInWords says why the server does not take an object.
func RefusedInWords(s *session.Session, e Entry, err error) string {
	var status apierrors.APIStatus
	switch {
	case !errors.As(err, &status) || session.IsMissingKind(err):
		return s.InWords(err).Error()
	case apierrors.IsAlreadyExists(err):
		return fmt.Sprintf("%v: %s already exists; delete it first or choose another name", e.From, describe(e.Object))
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("%v: %s: %s; create the namespace first", e.From, describe(e.Object), session.Refusal(err))
	}
	return fmt.Sprintf("%v: the server refused %s:%s", e.From, describe(e.Object), afterColon(session.Refusal(err)))
}

// afterColon sets a message off from the colon before it, unless it starts a line of its own.
func afterColon(message string) string {
	if strings.HasPrefix(message, "\n") {
		return message
	}
	return " " + message
}

// describe names an object: its kind, and its namespace and name.
func describe(object *unstructured.Unstructured) string {
	name := object.GetName()
	if name == "" {
		name = object.GetGenerateName() + "*"
	}
	if object.GetNamespace() != "" {
		name = object.GetNamespace() + "/" + name
	}
	return object.GetKind() + " " + name
}
