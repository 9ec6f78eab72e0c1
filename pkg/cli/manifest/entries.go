package manifest

import (
	"context"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// ReadEntries decodes every document of every file. Its error lists the problems of all of them.
func ReadEntries(ctx context.Context, paths []string, recursive bool, in io.Reader) ([]Entry, error) {
	return read(ctx, paths, recursive, in, false)
}

// ReadAny decodes every document of every file, whatever the kinds of their objects.
func ReadAny(ctx context.Context, paths []string, in io.Reader) ([]Entry, error) {
	return read(ctx, paths, false, in, true)
}

func read(ctx context.Context, paths []string, recursive bool, in io.Reader, anyKind bool) ([]Entry, error) {
	files, err := expand(paths, recursive)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	var problems []string
	for _, file := range files {
		documents, err := ReadDocuments(ctx, file, in)
		if err != nil {
			return nil, err
		}
		for _, d := range documents {
			objects, err := decode(d, anyKind)
			if err != nil {
				problems = append(problems, fmt.Sprintf("%v: %v", d, err))
			}
			for _, object := range objects {
				entries = append(entries, Entry{From: d, Object: object})
			}
		}
	}
	if len(problems) > 0 {
		return nil, session.Fail(session.ExitError, "%s\nNothing was created.", strings.Join(problems, "\nError: "))
	}
	if len(entries) == 0 {
		return nil, session.Fail(session.ExitError, "there are no objects to submit in %s", strings.Join(paths, ", "))
	}
	return entries, nil
}

// DecodeAny decodes every document of a text, which has the name of a file, whatever the kinds of their objects.
func DecodeAny(file, text string) (objects []*unstructured.Unstructured, err error) {
	documents, err := split(Stdin, []byte(text))
	if err != nil {
		return nil, err
	}
	for _, d := range documents {
		d.file = file
		in, err := decode(d, true)
		if err != nil {
			return nil, session.Fail(session.ExitError, "%v: %v", d, err)
		}
		objects = append(objects, in...)
	}
	return objects, nil
}

// SetNamespaces gives every namespaced object its namespace; one that -n contradicts is refused.
func SetNamespaces(entries []Entry, namespace string, explicit bool) error {
	for _, e := range entries {
		own := e.Object.GetNamespace()
		switch {
		case e.Object.GetKind() == "Budget" && own != "":
			return session.Fail(session.ExitError,
				"%v: %s: Budgets belong to the cluster; leave metadata.namespace out. Nothing was created.",
				e.From, describe(e.Object))
		case e.Object.GetKind() == "Budget":
		case own == "":
			e.Object.SetNamespace(namespace)
		case explicit && own != namespace:
			return session.Fail(session.ExitError,
				"%v: %s is in namespace %q, but -n says %q; leave one of them out. Nothing was created.",
				e.From, describe(e.Object), own, namespace)
		}
	}
	return nil
}

// Entry is an object to submit and the document that it comes from.
type Entry struct {
	From   document
	Object *unstructured.Unstructured
}

// Typed is an object that comes from the command line itself.
func Typed(object *unstructured.Unstructured) Entry { return Entry{From: document{}, Object: object} }
