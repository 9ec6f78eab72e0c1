package controlplane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Contents are the objects of a control plane that are in no namespace or in some, each with its version. A control
// plane that has them again is as it was: to start one takes longer than many a test.
type Contents struct {
	namespaces []string
	versions   map[object]string
}

// object is one of the API's.
type object struct {
	kind            schema.GroupVersionKind
	namespace, name string
}

func (o object) String() string {
	return o.kind.Kind + " " + strings.TrimPrefix(o.namespace+"/"+o.name, "/")
}

func (o object) compare(p object) int { return strings.Compare(o.String(), p.String()) }

func (o object) metadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name}}
	m.SetGroupVersionKind(o.kind)
	return m
}

// volatile are the groups and kinds that change by themselves, or say what others do.
var volatile = []string{"apiregistration.k8s.io", "events.k8s.io", "discovery.k8s.io", "Event", "ComponentStatus"}

// Contents returns what the control plane holds in no namespace and in these.
func (c *ControlPlane) Contents(ctx context.Context, namespaces ...string) (*Contents, error) {
	api, err := c.remover()
	if err != nil {
		return nil, err
	}
	served, err := discovery.ServerPreferredResources(c.client.Discovery())
	if err != nil {
		return nil, err
	}
	found := &Contents{namespaces, map[object]string{}}
	for _, list := range served {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") ||
				slices.Contains(volatile, version.Group) || slices.Contains(volatile, r.Kind) {
				continue
			}
			in := []string{metav1.NamespaceNone}
			if r.Namespaced {
				in = namespaces
			}
			for _, namespace := range in {
				if err := found.read(ctx, api, version.WithKind(r.Kind), namespace); err != nil {
					return nil, err
				}
			}
		}
	}
	return found, nil
}

func (c *Contents) read(ctx context.Context, api client.Client, kind schema.GroupVersionKind, namespace string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing %v: %w", kind, err)
	}
	for i := range list.Items {
		o := &list.Items[i]
		version := fmt.Sprint(o.Generation) // what its status says may change
		if o.Generation == 0 {
			version = o.ResourceVersion
		}
		c.versions[object{kind, o.Namespace, o.Name}] = string(o.UID) + " " + version
	}
	return nil
}

// RestoreTo deletes what the control plane did not hold before, and tells which namespaces go. It is an error if
// something is left, or not as it was, when the context ends.
func (c *ControlPlane) RestoreTo(ctx context.Context, before *Contents, goes func(namespace string)) error {
	api, err := c.remover()
	if err != nil {
		return err
	}
	for {
		going, err := c.remove(ctx, api, before, goes)
		if err == nil {
			break
		}
		for len(going) > 0 && ctx.Err() == nil { // to see whether they are gone costs less than to list all there is
			namespace := object{corev1.SchemeGroupVersion.WithKind("Namespace"), metav1.NamespaceNone, going[0]}.metadata()
			if apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)) {
				going = going[1:]
				continue
			}
			pause(ctx)
		}
		if ctx.Err() != nil {
			return err
		}
		pause(ctx)
	}
	for _, namespace := range before.namespaces {
		if err := api.DeleteAllOf(ctx, &corev1.Event{}, client.InNamespace(namespace)); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for a moment, or until the context ends.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

// remove deletes what the control plane did not hold before. It is an error if something was there, or is not as it
// was; it returns the namespaces among that.
func (c *ControlPlane) remove(ctx context.Context, api client.Client, before *Contents,
	goes func(namespace string)) (namespaces []string, err error) {
	now, err := c.Contents(ctx, before.namespaces...)
	if err != nil {
		return nil, err
	}
	var differ []string
	for _, key := range slices.SortedFunc(maps.Keys(now.versions), object.compare) {
		if _, installed := before.versions[key]; installed {
			continue
		}
		differ = append(differ, key.String())
		if key.kind.Kind == "Namespace" {
			// The nodes of its pods may be gone.
			err := api.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(key.name), client.GracePeriodSeconds(0))
			if err != nil {
				return nil, err
			}
			namespaces = append(namespaces, key.name)
			goes(key.name)
		}
		if err := api.Delete(ctx, key.metadata()); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(before.versions), object.compare) {
		if now.versions[key] != before.versions[key] {
			differ = append(differ, key.String())
		}
	}
	if len(differ) > 0 {
		err = fmt.Errorf("other than when it was new: %s", strings.Join(differ, ", "))
	}
	return namespaces, err
}

// remover is a client with all rights, under the one name that may delete the record of what was spent.
func (c *ControlPlane) remover() (client.Client, error) {
	config := c.AdminConfig()
	config.Impersonate.UserName = "system:serviceaccount:" + Namespace + ":" + SchedulerAccount
	config.Impersonate.Groups = []string{"system:masters"}
	return client.New(config, client.Options{})
}
