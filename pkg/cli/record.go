package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// record reads the Reservation to check: from a file, for which no cluster is needed, or by name, which has no slash.
func (e *explainer) record(ctx context.Context) (*rqv1.Reservation, error) {
	if e.verify == stdin || strings.Contains(e.verify, "/") || slices.Contains(manifestEndings, filepath.Ext(e.verify)) {
		return e.recordIn(e.verify)
	}
	c, namespace, _, err := e.connect()
	if err != nil {
		return nil, err
	}
	r := &rqv1.Reservation{}
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: e.verify}, r)
	if apierrors.IsNotFound(err) && !isMissingKind(err) {
		return nil, fail(exitError, "Reservation %q not found in namespace %q; \"kubectl get reservations -A\" shows all; the name of a file ends in %s",
			e.verify, namespace, strings.Join(manifestEndings, ", "))
	}
	return r, err
}

// recordIn reads a file that holds one Reservation, as such or as the only item of a List.
func (e *explainer) recordIn(file string) (*rqv1.Reservation, error) {
	documents, err := readDocuments(file, e.In)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, d := range documents {
		found, err := decode(d)
		if err != nil {
			return nil, fail(exitError, "%v: %v", d, err)
		}
		objects = append(objects, found...)
	}
	if len(objects) != 1 {
		return nil, fail(exitError, "%s holds %d objects; --verify checks one Reservation", source(file), len(objects))
	}
	if kind := objects[0].GetKind(); kind != "Reservation" {
		return nil, fail(exitError, "%s holds a %s; --verify checks a Reservation", source(file), kind)
	}
	r := &rqv1.Reservation{}
	return r, runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, r)
}
