package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// asMade returns the pods of a group that wait without those that say a JobSet made them, so that they may keep pods of
// other namespaces away, where none did: these are turned away. What has been found out is kept, also where the rest
// cannot be: that a JobSet made a pod for good, and that none did for a while.
func (g *groups) asMade(ctx context.Context, key group.Key, waiting []*corev1.Pod) (left []*corev1.Pod, err error) {
	g.mu.Lock()
	known := g.of(key).apart
	g.mu.Unlock()
	apart, makers, now := map[types.UID]ofASet{}, makers{groupReader: &g.groupReader}, g.clock.Now()
	for _, pod := range waiting {
		job := g.exclusiveJob(pod)
		if job == nil {
			left = append(left, pod)
			continue
		}
		is, found := known[pod.UID]
		if err == nil && (!found || !is.yes && !now.Before(is.until)) {
			is.yes, err = makers.ofJobSet(ctx, pod, job)
			is.until, found = now.Add(denialFor), err == nil
		}
		if !found {
			continue
		}
		apart[pod.UID] = is
		if is.yes {
			left = append(left, pod)
		} else {
			g.refuse(lifecycle.ReasonNotServed, group.ReachesOutOfNoJobSet(pod), pod)
		}
	}
	g.mu.Lock()
	g.of(key).apart = apart
	g.mu.Unlock()
	return left, err
}

// exclusiveJob returns the Job that is to be one of a JobSet for a pod to be let through; nil where that is not asked.
func (g *groups) exclusiveJob(pod *corev1.Pod) *metav1.OwnerReference {
	if g.antiAffinity || !g.asksForGPUs(pod) {
		return nil
	}
	return group.ExclusiveJob(pod)
}

// ofASet is whether a JobSet has made a pod, and until when it is not asked again whether one has that did not.
type ofASet struct {
	yes   bool
	until time.Time
}

// makers reads what has made pods, each once however many it has made.
type makers struct {
	*groupReader
	read map[ownedBy]*unstructured.Unstructured
}

// ownedBy names an object as an owner reference does.
type ownedBy struct {
	namespace, api, kind, name string
	uid                        types.UID
}

// ofJobSet reports whether a Job which has made a pod is there, is a JobSet's, and has the key that the pod has.
func (m *makers) ofJobSet(ctx context.Context, pod *corev1.Pod, by *metav1.OwnerReference) (bool, error) {
	job, err := m.maker(ctx, pod.Namespace, by)
	if job == nil || err != nil || group.JobKey(job) != group.JobKey(pod) {
		return false, err
	}
	by = metav1.GetControllerOf(job)
	if by == nil || !group.IsJobSet(by) {
		return false, nil
	}
	set, err := m.maker(ctx, pod.Namespace, by)
	return set != nil, err
}

// maker reads what a reference in a namespace names; nil where that is not there, or may not be read.
func (m *makers) maker(ctx context.Context, namespace string, by *metav1.OwnerReference) (
	*unstructured.Unstructured, error) {
	if !group.Names(by) {
		return nil, nil
	}
	of := ownedBy{namespace, by.APIVersion, by.Kind, by.Name, by.UID}
	if object, read := m.read[of]; read {
		return object, nil
	}
	object, err := m.named(ctx, namespace, by)
	switch {
	case unreadable(err), err == nil && object.GetUID() != by.UID:
		object = nil
	case err != nil:
		return nil, err
	}
	if m.read == nil {
		m.read = map[ownedBy]*unstructured.Unstructured{}
	}
	m.read[of] = object
	return object, nil
}
