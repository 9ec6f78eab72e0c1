package controllers

import (
	"context"
	"encoding/json"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
	"github.com/davidlangworthy/jobtree/test/story/simulated"
)

// simAPI is the API server of a simulated cluster, as far as groups ask it.
type simAPI struct {
	client.WithWatch
	c      *simulated.Cluster
	served *meta.DefaultRESTMapper
	reads  map[schema.GroupResource]bool
}

func (a *simAPI) RESTMapper() meta.RESTMapper { return a.served }

// Get returns an object that the scheduler may read.
func (a *simAPI) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if run, is := into.(*rqv1.Run); is {
		if a.c.Runs[key.Name] == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "runs"}, key.Name)
		}
		a.c.Runs[key.Name].DeepCopyInto(run)
		return nil
	}
	kind := into.GetObjectKind().GroupVersionKind()
	mapping, err := a.served.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	of := mapping.Resource.GroupResource()
	if !a.reads[of] {
		return apierrors.NewForbidden(of, key.Name, nil)
	}
	object := a.c.Objects[simulated.ObjectKey(kind.GroupKind(), key.Name)]
	if kind.Kind == "Pod" {
		object = a.pod(key.Name)
	}
	if object == nil {
		return apierrors.NewNotFound(of, key.Name)
	}
	object.DeepCopyInto(into.(*unstructured.Unstructured))
	return nil
}

func (a *simAPI) pod(name string) *unstructured.Unstructured {
	for _, pod := range a.c.Pods {
		if pod.Name == name {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
			if err != nil {
				panic(err)
			}
			content["apiVersion"], content["kind"] = "v1", "Pod"
			return &unstructured.Unstructured{Object: content}
		}
	}
	return nil
}

// Create makes a Run.
func (a *simAPI) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	if a.c.Runs[o.GetName()] != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "runs"}, o.GetName())
	}
	return a.c.Write(sim.Creations, o.GetName(), func() { a.c.Submit(o.(*rqv1.Run).DeepCopy()) })
}

// Delete deletes a Run. Its pods are others', and stay.
func (a *simAPI) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	if is := a.c.Runs[o.GetName()]; is == nil || is.UID != o.GetUID() {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "runs"}, o.GetName())
	}
	return a.c.Write(sim.Deletions, o.GetName(), func() { a.c.ForgetRun(o.GetName()) })
}

// Patch changes a Run.
func (a *simAPI) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	is := a.c.Runs[o.GetName()]
	if is == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "runs"}, o.GetName())
	}
	next := &rqv1.Run{}
	if err := patched(is, next, patch, o); err != nil {
		return err
	}
	next.Generation++
	return a.c.Write(sim.Statuses, o.GetName(), func() { a.c.SetRun(next) })
}

// patched has into be an object with a merge patch.
func patched(is, into any, patch client.Patch, of client.Object) error {
	change, err := patch.Data(of)
	if err != nil {
		return err
	}
	text, err := json.Marshal(is)
	if err != nil {
		return err
	}
	var fields, by map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	if err := json.Unmarshal(change, &by); err != nil {
		return err
	}
	merge(fields, by)
	text, err = json.Marshal(fields)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func merge(fields, by map[string]any) {
	for key, value := range by {
		below, is := value.(map[string]any)
		of, was := fields[key].(map[string]any)
		switch {
		case value == nil:
			delete(fields, key)
		case is && was:
			merge(of, below)
		default:
			fields[key] = value
		}
	}
}

func (a *simAPI) Status() client.SubResourceWriter { return simStatus{a: a} }

// simStatus writes the status of what groups are known by.
type simStatus struct {
	client.SubResourceWriter
	a *simAPI
}

func (s simStatus) Patch(_ context.Context, o client.Object, patch client.Patch,
	_ ...client.SubResourcePatchOption) error {
	key := simulated.ObjectKey(o.GetObjectKind().GroupVersionKind().GroupKind(), o.GetName())
	is := s.a.c.Objects[key]
	if is == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, o.GetName())
	}
	next := &unstructured.Unstructured{}
	if err := patched(is, next, patch, o); err != nil {
		return err
	}
	return s.a.c.Write(sim.Statuses, key, func() { s.a.c.Objects[key] = next })
}

// rights answer who may spend: all, as an owner and those below it.
type rights struct {
	kubernetes.Interface
	owner rqv1.Owner
}

func (r rights) AuthorizationV1() authorizationclient.AuthorizationV1Interface {
	return rightsV1{owner: r.owner}
}

type rightsV1 struct {
	authorizationclient.AuthorizationV1Interface
	owner rqv1.Owner
}

func (r rightsV1) SubjectAccessReviews() authorizationclient.SubjectAccessReviewInterface {
	return reviews{owner: r.owner}
}

type reviews struct {
	authorizationclient.SubjectAccessReviewInterface
	owner rqv1.Owner
}

func (r reviews) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (
	*authorizationv1.SubjectAccessReview, error) {
	of := review.Spec.ResourceAttributes
	review.Status.Allowed = of != nil && of.Verb == "use" && strings.HasPrefix(of.Name, string(r.owner))
	return review, nil
}
