package controllers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// createRun makes the Run that stands for a group. It says what is wrong with it where the API server does not take it.
func (g *groups) createRun(ctx context.Context, o *group.Observed, d *group.Derived) (problem string, err error) {
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: o.Key.Namespace, Name: d.Name,
		OwnerReferences: ownersOf(o), Annotations: map[string]string{rqv1.AnnotationDerived: d.Hash()}}, Spec: *d.Spec}
	if len(o.MadeFor) > 0 {
		run.Annotations[rqv1.AnnotationMadeFor] = group.SayMadeFor(o.MadeFor)
	}
	if d.Exclusive != "" {
		run.Annotations[rqv1.AnnotationExclusive] = d.Exclusive
	}
	err = g.client.Create(ctx, run)
	switch {
	case apierrors.IsAlreadyExists(err):
		err = g.client.Get(ctx, client.ObjectKeyFromObject(run), run)
		if err == nil && !standsFor(run, o.Key) {
			return fmt.Sprintf("Run %s, which would represent %s, exists and is somebody else's: rename it", run.Name, o.Key),
				nil
		}
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		return fmt.Sprintf("no Run can stand for %s: %v", o.Key, err), nil
	}
	return "", err
}

func (g *groups) deleteRun(ctx context.Context, run *rqv1.Run) error {
	err := g.client.Delete(ctx, run, client.Preconditions{UID: &run.UID})
	return ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
}

// ownersOf returns what a Run goes with that stands for a group: what the group is known by, else the controller that
// makes its only pod again when that is gone, else the pod.
func ownersOf(o *group.Observed) []metav1.OwnerReference {
	switch {
	case o.Object != nil:
		return []metav1.OwnerReference{referenceTo(o.Object)}
	case o.Key.Kind == "Pod" && len(o.Pods) > 0:
		pod := o.Pods[0] // one that waits comes before one that goes
		by := o.By
		if by == nil {
			by = metav1.GetControllerOfNoCopy(pod)
		}
		if by != nil && group.Names(by) {
			return []metav1.OwnerReference{{APIVersion: by.APIVersion, Kind: by.Kind, Name: by.Name, UID: by.UID}}
		}
		return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}
	}
	return nil
}
