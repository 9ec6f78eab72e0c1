package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// groupReader reads what is said of groups: their objects, what these are made for, their namespaces, and who may pay.
type groupReader struct {
	client     client.WithWatch
	kube       kubernetes.Interface
	rules      group.Rules
	types      func() []string
	namespaces corelisters.NamespaceLister
	allowed    *allowed
	// deadline is for how long places are kept for pods that others are to make.
	deadline time.Duration
	// antiAffinity says that pods may keep those of other namespaces away, whoever made them.
	antiAffinity bool
}

func newGroupReader(o *Options) groupReader {
	return groupReader{client: o.Client, kube: o.Kube, types: o.Book.Flavors,
		namespaces: o.Shared.Core().V1().Namespaces().Lister(),
		deadline:   o.Args.GangDeadline.Duration, antiAffinity: o.Args.ForeignAntiAffinity == config.AntiAffinityAllow,
		allowed: &allowed{clock: o.Clock, known: map[allowance]answer{}},
		rules:   group.RulesOf(o.Args)}
}

// mostAbove is how many objects one above the other are read.
const mostAbove = 8

// observe gathers what is known of a group, and says what is wrong where its object cannot be read.
func (r *groupReader) observe(ctx context.Context, key group.Key, run *rqv1.Run, pods []*corev1.Pod) (
	o *group.Observed, problem string, err error) {
	o = &group.Observed{Rules: r.rules, Key: key, Pods: pods, Types: r.types()}
	if space, err := r.namespaces.Get(key.Namespace); err == nil {
		o.Namespace = space.Annotations
	}
	if key.API != "" {
		o.Object, problem, err = r.object(ctx, key)
		if err != nil || problem != "" && group.Counts(key) {
			return o, problem, err
		}
	}
	above := &unstructured.Unstructured{Object: o.Object}
	if o.Object != nil {
		o.Above = append(o.Above, said(above))
	}
	if name := group.ObjectName(key); name != key.Name {
		o.MadeFor = append(o.MadeFor, group.Key{Namespace: key.Namespace, API: key.API, Kind: key.Kind, Name: name})
	}
	own := len(o.MadeFor)
	var next *metav1.OwnerReference
	switch {
	case len(pods) > 0:
		next = metav1.GetControllerOfNoCopy(pods[0])
	case o.Object != nil:
		next = metav1.GetControllerOf(above)
	case run != nil && makerOf(run) != (makerID{}):
		next = &run.OwnerReferences[0]
	}
	for range mostAbove {
		if next == nil || !group.Names(next) {
			break
		}
		if o.Object != nil && next.UID == above.GetUID() { // it has been read
			o.MadeFor, next = o.MadeFor[:own], metav1.GetControllerOf(above)
			continue
		}
		o.MadeFor = append(o.MadeFor, group.MadeFor(key.Namespace, next))
		object, err := r.named(ctx, key.Namespace, next)
		switch {
		case unreadable(err):
			if !apierrors.IsNotFound(err) {
				o.Unread = next.Kind + "/" + next.Name
			}
			return o, "", nil // as far up as may be seen
		case err != nil:
			return o, "", err
		}
		o.Above = append(o.Above, said(object))
		if key.Alone() && object.GetUID() == next.UID && (len(o.Above) == 1 || makesForTemplates(o, object)) {
			o.By, o.Maker = next, object.Object
		}
		next = metav1.GetControllerOf(object)
	}
	return o, "", nil
}

// makesForTemplates reports whether an object is what controls that which makes a group's pods for one template: it
// says how many there are to be, and makes another such controller for the next template.
func makesForTemplates(o *group.Observed, object *unstructured.Unstructured) bool {
	_, says := group.Asked(object.Object)
	return len(o.Above) == 2 && o.By != nil && group.OfOneTemplate(o.By) && says
}

// named reads what a reference in a namespace names, which may be another of that name.
func (r *groupReader) named(ctx context.Context, namespace string, by *metav1.OwnerReference) (
	*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(by.APIVersion)
	object.SetKind(by.Kind)
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: by.Name}, object)
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", by.Kind, by.Name, err)
	}
	return object, nil
}

// unreadable reports whether an object is not read, however often it is tried: whoever makes a pod may name anything as
// its controller, also of a kind that cannot be read.
func unreadable(err error) bool {
	var answer apierrors.APIStatus
	told := errors.As(err, &answer)
	return meta.IsNoMatchError(err) || told && answer.Status().Code >= 400 && answer.Status().Code < 500 &&
		!apierrors.IsTooManyRequests(err) && !apierrors.IsUnauthorized(err)
}

func said(object *unstructured.Unstructured) group.Said {
	return group.Said{By: object.GetKind() + "/" + object.GetName(), Annotations: object.GetAnnotations()}
}

// object reads what a group is known by; nil where it is not there.
func (r *groupReader) object(ctx context.Context, key group.Key) (map[string]any, string, error) {
	kind := schema.GroupKind{Group: key.API, Kind: key.Kind}
	mapping, err := r.client.RESTMapper().RESTMapping(kind)
	switch {
	case meta.IsNoMatchError(err):
		return nil, fmt.Sprintf("the pods name %s of %s, and the API server serves no such kind: %s, or leave the name out",
			key, key.API, group.ToServe(key)), nil
	case err != nil:
		return nil, "", fmt.Errorf("finding %s: %w", kind, err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	err = r.client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: group.ObjectName(key)}, object)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Sprintf("the pods name %s of %s, which does not exist in namespace %s: create it there, where its "+
			"pods are, or correct the name", key, key.API, key.Namespace), nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Sprintf("the scheduler may not read %s, so it cannot tell how many pods it has: ask an "+
			"administrator to add its kind to a ClusterRole with label %s/group-reader: \"true\"", key, rqv1.GroupName), nil
	case err != nil:
		return nil, "", fmt.Errorf("reading %s: %w", key, err)
	}
	return object.Object, "", nil
}

func referenceTo(object map[string]any) metav1.OwnerReference {
	o := &unstructured.Unstructured{Object: object}
	return metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID()}
}

// allowance is an owner whom a service account may spend as.
type allowance struct {
	namespace, account string
	owner              rqv1.Owner
}

// allowed keeps for a while who may pay, and who may not.
type allowed struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	known map[allowance]answer
}

// answer is why somebody may not pay, empty for one who may, and until when that is known.
type answer struct {
	refused string
	until   time.Time
}

// How long it is known that somebody may pay, or may not: many groups of a namespace ask the same.
const (
	allowedFor = time.Minute
	denialFor  = 5 * time.Second
)

// of returns what is known of somebody at an instant.
func (k *allowed) of(a allowance, now time.Time) (answer, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, ok := k.known[a]
	return known, ok && now.Before(known.until)
}

// note keeps an answer, and drops those that are old.
func (k *allowed) note(a allowance, is answer, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= mostKnown {
		maps.DeleteFunc(k.known, func(_ allowance, of answer) bool { return !now.Before(of.until) })
	}
	k.known[a] = is
}

// mostKnown is from how many answers on the old ones are looked for.
const mostKnown = 1000

// mayAllPay says why the service account of one of some pods that ask for GPUs may not spend as an owner; empty when
// all may.
func (r *groupReader) mayAllPay(ctx context.Context, pods []*corev1.Pod, owner rqv1.Owner) (refused string, err error) {
	who, err := r.whoMayPay(ctx, pods, owner)
	for _, pod := range pods {
		if why := who[group.AccountOf(pod)]; why != "" {
			return why, err
		}
	}
	return "", err
}

// whoMayPay says of the service accounts of those pods that ask for GPUs why they may not spend as an owner; empty for
// those that may.
func (r *groupReader) whoMayPay(ctx context.Context, pods []*corev1.Pod, owner rqv1.Owner) (map[string]string, error) {
	who := map[string]string{}
	for _, pod := range pods {
		if _, asked := who[group.AccountOf(pod)]; asked || r.rules.GPUs(&pod.Spec) == 0 {
			continue
		}
		refused, err := r.mayPay(ctx, pod, owner)
		if err != nil {
			return nil, err
		}
		who[group.AccountOf(pod)] = refused
	}
	return who, nil
}

// mayPay says why the service account of a pod may not spend as an owner (R10, R41); empty when it may.
func (r *groupReader) mayPay(ctx context.Context, pod *corev1.Pod, owner rqv1.Owner) (refused string, err error) {
	account := group.AccountOf(pod)
	a, now := allowance{pod.Namespace, account, owner}, r.allowed.clock.Now()
	if known, ok := r.allowed.of(a, now); ok {
		return known.refused, nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: group.MayPay(pod, owner)}
	review, err = r.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case err != nil:
		return "", fmt.Errorf("asking whether %s may pay: %w", account, err)
	case !review.Status.Allowed:
		refused = group.MayNotPay(pod, owner)
		r.allowed.note(a, answer{refused, now.Add(denialFor)}, now)
		return refused, nil
	}
	r.allowed.note(a, answer{"", now.Add(allowedFor)}, now)
	return "", nil
}
