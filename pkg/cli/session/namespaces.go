package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// readsAtOnce is how many namespaces are read at the same time.
const readsAtOnce = 16

// List reads the objects of a namespace, or of all namespaces where that is empty. Who may not list those of all
// namespaces gets those of the namespaces that are known and that he may read. Which these are is said on standard
// error, once.
func (s *Session) List(ctx context.Context, c client.Client, namespace string, into client.ObjectList,
	options ...client.ListOption) error {
	in := func(namespace string) []client.ListOption {
		return append(slices.Clone(options), client.InNamespace(namespace))
	}
	refused := c.List(ctx, into, in(namespace)...)
	if namespace != "" || !apierrors.IsForbidden(refused) {
		return refused
	}
	known, err := s.knownNamespaces(ctx, c)
	if err != nil {
		return err
	}
	return s.listKnown(ctx, c, known, refused, into, in)
}

// listKnown reads the objects of some namespaces, those apart that may not be read. Refused is why not all are read.
func (s *Session) listKnown(ctx context.Context, c client.Client, known []string, refused error,
	into client.ObjectList, in func(namespace string) []client.ListOption) error {
	parts := make([]client.ObjectList, len(known))
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(readsAtOnce)
	for i, namespace := range known {
		reads.Go(func() error {
			part := into.DeepCopyObject().(client.ObjectList)
			err := c.List(ctx, part, in(namespace)...)
			if err == nil {
				parts[i] = part
			}
			if apierrors.IsForbidden(err) {
				return nil
			}
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return err
	}
	var objects []runtime.Object
	var read []string
	for i, part := range parts {
		if part == nil {
			continue
		}
		found, err := meta.ExtractList(part)
		if err != nil {
			return err
		}
		objects, read = append(objects, found...), append(read, known[i])
	}
	if len(read) == 0 {
		return Fail(ExitError, "%s, nor in any of the namespaces %s; name one with -n, or ask an administrator for the right",
			Refusal(refused), strings.Join(known, ", "))
	}
	s.TellRead(read)
	return meta.SetList(into, objects)
}

// TellRead says in which namespaces was read, unless that has been said.
func (s *Session) TellRead(namespaces []string) {
	if slices.Equal(s.read, namespaces) {
		return
	}
	s.read = namespaces
	what := "namespaces " + strings.Join(namespaces, ", ")
	if len(namespaces) == 1 {
		what = "namespace " + namespaces[0]
	}
	fmt.Fprintf(s.ErrOut, "Showing %s only: you may not read all namespaces; choose another one with -n.\n", what)
}

// knownNamespaces are those that somebody knows of who may not read all: those that there are, if he may list them, or
// else the one that is worked in, those of his contexts of the same cluster, and those with Reservations, which
// everybody may list unless an administrator has said otherwise.
func (s *Session) knownNamespaces(ctx context.Context, c client.Client) ([]string, error) {
	if s.known != nil {
		return s.known, nil
	}
	var all corev1.NamespaceList
	err := c.List(ctx, &all)
	switch {
	case err == nil:
		for i := range all.Items {
			s.known = append(s.known, all.Items[i].Name)
		}
	case apierrors.IsForbidden(err):
		if s.known, err = s.contextNamespaces(); err != nil {
			return nil, err
		}
		var reservations rqv1.ReservationList
		if err := c.List(ctx, &reservations); err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		for i := range reservations.Items {
			s.known = append(s.known, reservations.Items[i].Namespace)
		}
	default:
		return nil, err
	}
	slices.Sort(s.known)
	s.known = slices.Compact(s.known)
	return s.known, nil
}

// contextNamespaces are the namespace that is worked in and those of the contexts of the same cluster.
func (s *Session) contextNamespaces() ([]string, error) {
	loader := s.Flags.ToRawKubeConfigLoader()
	current, _, err := loader.Namespace()
	if err != nil {
		return nil, err
	}
	file, err := loader.RawConfig()
	if err != nil {
		return nil, err
	}
	names := []string{current}
	name := file.CurrentContext
	if *s.Flags.Context != "" {
		name = *s.Flags.Context
	}
	if own := file.Contexts[name]; own != nil {
		for _, other := range file.Contexts {
			if other.Cluster == own.Cluster && other.Namespace != "" {
				names = append(names, other.Namespace)
			}
		}
	}
	return names, nil
}

// Readable returns the namespaces in which objects of a kind may be listed: "" alone where all may. Where that is not
// so, lacks says what may not be read.
func (s *Session) Readable(ctx context.Context, c client.Client, object client.Object,
	list client.ObjectList) (namespaces []string, lacks string, err error) {
	probe := func(namespace string) error {
		one := list.DeepCopyObject().(client.ObjectList)
		return c.List(ctx, one, client.InNamespace(namespace), client.Limit(1))
	}
	refused := probe("")
	if !apierrors.IsForbidden(refused) {
		return []string{""}, "", refused
	}
	if namespaced, err := c.IsObjectNamespaced(object); err != nil || !namespaced {
		return nil, Refusal(refused), err
	}
	known, err := s.knownNamespaces(ctx, c)
	if err != nil {
		return nil, "", err
	}
	for _, namespace := range known {
		switch err := probe(namespace); {
		case err == nil:
			namespaces = append(namespaces, namespace)
		case !apierrors.IsForbidden(err):
			return nil, "", err
		}
	}
	if len(namespaces) == 0 {
		return nil, Refusal(refused), nil
	}
	return namespaces, "you may read those of " + strings.Join(namespaces, ", ") + " only", nil
}
