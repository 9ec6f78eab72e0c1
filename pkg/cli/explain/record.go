package explain

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/manifest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// recordOf reads the Reservation to check: from a file, for which no cluster is needed, or by name, which has no slash.
func recordOf(ctx context.Context, s *session.Session, of string) (*rqv1.Reservation, error) {
	if of == manifest.Stdin || strings.Contains(of, "/") || slices.Contains(manifest.ManifestEndings,
		filepath.Ext(of)) {
		return recordIn(ctx, of, s.In)
	}
	c, namespace, _, err := s.Connect()
	if err != nil {
		return nil, err
	}
	r := &rqv1.Reservation{}
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: of}, r)
	if apierrors.IsNotFound(err) && !session.IsMissingKind(err) {
		return nil, session.Fail(session.ExitError,
			"Reservation %q not found in namespace %q; \"kubectl get reservations -A\" shows all; the name of a file ends in %s",
			of, namespace, strings.Join(manifest.ManifestEndings, ", "))
	}
	return r, err
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
