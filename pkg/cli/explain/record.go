package explain

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/manifest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// recordOf reads the Reservation to check: from a file, for which no cluster is needed, or by name or NAMESPACE/NAME.
func recordOf(ctx context.Context, s *session.Session, of string) (*rqv1.Reservation, error) {
	within, name, named := nameOf(of)
	if !named {
		return recordIn(ctx, of, s.In)
	}
	c, namespace, given, err := s.Connect()
	if err != nil {
		return nil, err
	}
	noFile := ""
	if within != "" {
		if given && within != namespace {
			return nil, session.Elsewhere(of, within, namespace)
		}
		namespace, noFile = within, ", nor is there a file "+of
	}
	r := &rqv1.Reservation{}
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, r)
	if apierrors.IsNotFound(err) && !session.IsMissingKind(err) {
		return nil, session.Fail(session.ExitError,
			"Reservation %q not found in namespace %q%s; \"kubectl get reservations -A\" shows all; the name of a file "+
				"ends in %s", name, namespace, noFile, strings.Join(manifest.ManifestEndings, ", "))
	}
	return r, err
}

// nameOf returns what a word names that is to be checked: a Reservation, in a namespace if the word says so. It is
// false for a file: one that is there may be called like NAMESPACE/NAME.
func nameOf(word string) (namespace, name string, ok bool) {
	if word == manifest.Stdin || slices.Contains(manifest.ManifestEndings, filepath.Ext(word)) {
		return "", "", false
	}
	namespace, name, slashed := strings.Cut(word, "/")
	if !slashed {
		return "", word, true
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", "", false
	}
	_, err := os.Stat(word)
	return namespace, name, err != nil
}

// recordIn reads a file that holds one Reservation, as such or as the only item of a List.
func recordIn(ctx context.Context, file string, in io.Reader) (*rqv1.Reservation, error) {
	documents, err := manifest.ReadDocuments(ctx, file, in)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, d := range documents {
		found, err := manifest.Decode(d)
		if err != nil {
			return nil, session.Fail(session.ExitError, "%v: %v", d, err)
		}
		objects = append(objects, found...)
	}
	if len(objects) != 1 {
		return nil, session.Fail(session.ExitError, "%s holds %d objects; --verify checks one Reservation",
			manifest.Source(file), len(objects))
	}
	if kind := objects[0].GetKind(); kind != "Reservation" {
		return nil, session.Fail(session.ExitError, "%s holds a %s; --verify checks a Reservation", manifest.Source(file),
			kind)
	}
	r := &rqv1.Reservation{}
	return r, runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, r)
}
