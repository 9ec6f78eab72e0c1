package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// asMade returns the pods of a group that wait without those that say a JobSet made them, so that they may keep pods of
// other namespaces away, where none did: these are turned away.
func (g *groups) asMade(ctx context.Context, key group.Key, waiting []*corev1.Pod) (left []*corev1.Pod, err error) {
	g.mu.Lock()
	known, made := g.of(key).apart, map[types.UID]bool{}
	g.mu.Unlock()
	for _, pod := range waiting {
		job := g.exclusiveJob(pod)
		if job == nil {
			left = append(left, pod)
			continue
		}
		is := known[pod.UID]
		if !is {
			is, err = g.ofJobSet(ctx, pod, job)
		}
		switch {
		case err != nil:
			return nil, err
		case is:
			left, made[pod.UID] = append(left, pod), true
		default:
			g.decide([]*corev1.Pod{pod}, book.Stranger{Refused: group.ReachesOutOfNoJobSet(pod)})
		}
	}
	g.mu.Lock()
	g.of(key).apart = made
	g.mu.Unlock()
	return left, nil
}

// exclusiveJob returns the Job that is to be one of a JobSet for a pod to be let through; nil where that is not asked.
func (g *groups) exclusiveJob(pod *corev1.Pod) *metav1.OwnerReference {
	if g.antiAffinity || !g.asksForGPUs(pod) {
		return nil
	}
	return group.ExclusiveJob(pod)
}

// ofJobSet reports whether a Job which has made a pod is there, is a JobSet's, and has the key that the pod has.
func (r *groupReader) ofJobSet(ctx context.Context, pod *corev1.Pod, by *metav1.OwnerReference) (bool, error) {
	job, err := r.maker(ctx, pod.Namespace, by)
	if job == nil || err != nil || group.JobKey(job) != group.JobKey(pod) {
		return false, err
	}
	by = metav1.GetControllerOf(job)
	if by == nil || !group.IsJobSet(by) {
		return false, nil
	}
	set, err := r.maker(ctx, pod.Namespace, by)
	return set != nil, err
}

// maker reads what a reference in a namespace names; nil where that is not there, or may not be read.
func (r *groupReader) maker(ctx context.Context, namespace string, by *metav1.OwnerReference) (
	*unstructured.Unstructured, error) {
	if !group.Names(by) {
		return nil, nil
	}
	object, err := r.named(ctx, namespace, by)
	switch {
	case unreadable(err), err == nil && object.GetUID() != by.UID:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return object, nil
}
