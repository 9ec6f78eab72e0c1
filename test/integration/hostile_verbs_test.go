package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// how is a way to make an attempt.
type how = func(h *hostile, as client.Client) error

// object reads an object whose text names the site's parts.
func (h *hostile) object(text string) *unstructured.Unstructured {
	h.t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(h.fill(text)), &o.Object); err != nil {
		h.t.Fatalf("%v:\n%s", err, text)
	}
	return o
}

// named is an object of a kind, written VERSION/KIND NAMESPACE NAME, with a namespace of - for none.
func (h *hostile) named(what string) *unstructured.Unstructured {
	fields := strings.Fields(h.fill(what))
	at := strings.LastIndex(fields[0], "/")
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(fields[0][:at])
	o.SetKind(fields[0][at+1:])
	if fields[1] != "-" {
		o.SetNamespace(fields[1])
	}
	if len(fields) > 2 {
		o.SetName(fields[2])
	}
	return o
}

// creates creates an object.
func creates(text string) how {
	return func(h *hostile, as client.Client) error { return as.Create(context.Background(), h.object(text)) }
}

const baseRun = `{apiVersion: rq.davidlangworthy.io/v1, kind: Run, metadata: {namespace: $NS, name: evil},
spec: {owner: "$TEAM", resources: {gpuType: $FLAVOR, totalGPUs: 8}}}`

// runs creates a Run of the team with changes to it.
func runs(changes string) how {
	return func(h *hostile, as client.Client) error {
		return as.Create(context.Background(), merged(h.object(baseRun).Object, h.object(changes).Object))
	}
}

// specs creates a Run of the team with changes to its spec.
func specs(changes string) how { return runs("{spec: " + changes + "}") }

// templates creates a Run of the team with a template.
func templates(changes string) how {
	return func(h *hostile, as client.Client) error {
		base := h.object(`{metadata: {}, spec: {containers: [{name: main, image: pause}]}}`).Object
		merge(base, h.object(changes).Object)
		return as.Create(context.Background(),
			merged(h.object(baseRun).Object, map[string]any{"spec": map[string]any{"template": base}}))
	}
}

// patches merges changes into an object that is there.
func patches(what, changes string) how { return patchesWith(types.MergePatchType, what, changes) }

// patchesWith changes an object that is there by a kind of patch, in JSON or YAML; KIND/SUBRESOURCE is a subresource of
// it.
func patchesWith(kind types.PatchType, what, changes string) how {
	return func(h *hostile, as client.Client) error {
		what, sub, _ := strings.Cut(what, " of ")
		if sub != "" {
			what, sub = sub, what
		}
		text, err := yaml.YAMLToJSON([]byte(h.fill(changes)))
		if err != nil {
			return err
		}
		o, patch := h.named(what), client.RawPatch(kind, text)
		var options []client.PatchOption
		if kind == types.ApplyPatchType {
			options = []client.PatchOption{client.FieldOwner("evil"), client.ForceOwnership}
		}
		if sub == "" {
			return as.Patch(context.Background(), o, patch, options...)
		}
		var below []client.SubResourcePatchOption
		for _, option := range options {
			below = append(below, option.(client.SubResourcePatchOption))
		}
		return as.SubResource(sub).Patch(context.Background(), o, patch, below...)
	}
}

// deletes deletes an object, or all of a kind in a namespace when no name is given.
func deletes(what string, options ...client.DeleteOption) how {
	return func(h *hostile, as client.Client) error {
		o := h.named(what)
		if o.GetName() != "" {
			return as.Delete(context.Background(), o, options...)
		}
		return as.DeleteAllOf(context.Background(), o, client.InNamespace(o.GetNamespace()))
	}
}

// reads reads an object.
func reads(what string) how {
	return func(h *hostile, as client.Client) error {
		o := h.named(what)
		return as.Get(context.Background(), client.ObjectKeyFromObject(o), o)
	}
}

// below creates a subresource of an object, such as a pod's binding or eviction.
func below(sub, what, text string) how {
	return func(h *hostile, as client.Client) error {
		return as.SubResource(sub).Create(context.Background(), h.named(what), h.object(text))
	}
}

// withFirst does an attempt to the first object of a kind in the namespace: what to do says $NAME for its name.
func withFirst(kind string, do func(name string) how) how {
	return func(h *hostile, as client.Client) error {
		list := &unstructured.UnstructuredList{}
		o := h.named(kind + " $NS")
		list.SetGroupVersionKind(o.GroupVersionKind())
		if err := h.api.List(context.Background(), list, client.InNamespace(h.namespace)); err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return errors.New("there is no " + kind)
		}
		return do(list.Items[0].GetName())(h, as)
	}
}

// posing has a user act as somebody else.
func posing(whom string) how {
	return func(h *hostile, as client.Client) error {
		// The API server is asked for what it asks itself of who impersonates: both headers are the administrator's
		// otherwise.
		review := h.object(fmt.Sprintf(`{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, spec:
{resourceAttributes: {verb: impersonate, resource: serviceaccounts, namespace: jobtree-system, name: %s}}}`, whom))
		if err := as.Create(context.Background(), review); err != nil {
			return err
		}
		if allowed, _, _ := unstructured.NestedBool(review.Object, "status", "allowed"); !allowed {
			return errors.New("may not impersonate " + whom)
		}
		return nil
	}
}

// all does one thing after the other.
func all(steps ...how) how {
	return func(h *hostile, as client.Client) error {
		for _, step := range steps {
			if err := step(h, as); err != nil {
				return err
			}
		}
		return nil
	}
}

// running waits until a Run runs.
func running(run string) how {
	return func(h *hostile, _ client.Client) error {
		return waitFor(h.t, "what an attempt waits for", patience, func() error {
			is, err := h.get(run)
			if err == nil && is.Status.Phase != rqv1.RunRunning {
				err = fmt.Errorf("Run %s is %s: %s", run, is.Status.Phase, is.Status.Message)
			}
			return err
		})
	}
}

// saying is an error until a Run's message holds a text.
func saying(run string, phase rqv1.RunPhase, text string) func(h *hostile) error {
	return func(h *hostile) error {
		got, err := h.get(run)
		if err != nil {
			return err
		}
		return is(got, phase, h.fill(text))
	}
}

// podsGone is an error until no pod of a Run is left.
func podsGone(run string) func(h *hostile) error {
	return func(h *hostile) error {
		if left := h.podsOf(run); len(left) > 0 {
			return fmt.Errorf("%d pods of %s are left", len(left), run)
		}
		return nil
	}
}

// pod reads a pod.
func (h *hostile) pod(name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, h.api.Get(context.Background(), client.ObjectKey{Namespace: h.namespace, Name: name}, pod)
}

// quoted is a text as JSON has it.
func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// as has another user do something.
func as(user string, do how) how {
	return func(h *hostile, _ client.Client) error { return do(h, h.as(user)) }
}

// administrator has the administrator do something.
func administrator(do how) how {
	return func(h *hostile, _ client.Client) error { return do(h, h.api) }
}

// finalizerGoes takes the finalizer off a Run when the test ends.
func finalizerGoes(h *hostile, _ client.Client) error {
	h.t.Cleanup(func() {
		_ = patches("rq.davidlangworthy.io/v1/Run $NS evil", "{metadata: {finalizers: null}}")(h, h.api)
	})
	return nil
}

// longNames returns a list of names of 60 letters, in JSON.
func longNames(n int) string {
	return strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("a", 60)+`",`, n), ",")
}

// fills adds labels to an object until the API server takes no more.
func fills(what string) how {
	return func(h *hostile, as client.Client) error {
		added, prefix := 0, strings.Repeat("a", 200)+"/"
		for n := 1000; n > 0; {
			labels := map[string]string{}
			for i := range n {
				labels[fmt.Sprint(prefix, added+i)] = ""
			}
			text, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
			if err != nil {
				return err
			}
			err = patches(what, string(text))(h, as)
			switch {
			case err == nil:
				added += n
			case takesNoMore(err) && n == 1 && prefix != "":
				n, prefix = 100, "" // what little room there still is
			case takesNoMore(err):
				n /= 2
			case apierrors.IsTimeout(err): // the API server is slow with so large an object
			default:
				return err
			}
		}
		if added == 0 {
			return errors.New(what + " was full already")
		}
		return nil
	}
}

// takesNoMore reports whether an object is full: the store does not, or, for a pod, the policy that leaves room.
func takesNoMore(err error) bool {
	return strings.Contains(err.Error(), "too large") || strings.Contains(err.Error(), "may be given labels")
}

// quotaCounts waits until the controller of quotas has seen the one that is called q.
func quotaCounts(h *hostile, _ client.Client) error {
	return waitFor(h.t, "what an attempt waits for", patience, func() error {
		q := &corev1.ResourceQuota{}
		err := h.api.Get(context.Background(), client.ObjectKey{Namespace: h.namespace, Name: "q"}, q)
		if err == nil && len(q.Status.Hard) == 0 {
			err = errors.New("the quota does not count yet")
		}
		return err
	})
}

// podThere waits until a pod is there.
func podThere(name string) how {
	return func(h *hostile, _ client.Client) error {
		return waitFor(h.t, "pod "+name, patience, func() error { _, err := h.pod(name); return err })
	}
}

// podIs is an error until a pod is there and passes a check.
func podIs(name string, check func(pod *corev1.Pod) error) func(h *hostile) error {
	return func(h *hostile) error {
		pod, err := h.pod(name)
		if err != nil {
			return err
		}
		return check(pod)
	}
}

// capped is an error unless a pod has the longest grace period that there is.
func capped(pod *corev1.Pod) error {
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace == nil || *grace != mostGrace {
		return fmt.Errorf("pod %s has a grace period of %v", pod.Name, grace)
	}
	return nil
}

// podsEnded is an error until all pods of a Run that are left have ended.
func podsEnded(run string) func(h *hostile) error {
	return func(h *hostile) error {
		for _, pod := range h.podsOf(run) {
			if !ended(&pod) {
				return fmt.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
			}
		}
		return nil
	}
}

// ending is an error unless a pod has been told to end, within the longest grace period that there is.
func ending(pod *corev1.Pod) error {
	grace := pod.DeletionGracePeriodSeconds
	if _, told := rank.GoesBy(pod); told && grace == nil { // its kubelet ends it where it is
		grace = pod.Spec.TerminationGracePeriodSeconds
	}
	if grace == nil || *grace > mostGrace {
		return fmt.Errorf("pod %s, told to go at %v, has %v seconds", pod.Name, pod.DeletionTimestamp, grace)
	}
	return nil
}

// fewPods is an error when a Run has more pods than that.
func fewPods(run string, most int) func(h *hostile) error {
	return func(h *hostile) error {
		if pods := len(h.podsOf(run)); pods > most {
			return fmt.Errorf("there are %d pods", pods)
		}
		return nil
	}
}

// paidOnce is an error until a Run of 8 GPUs runs, and its own team pays for that and no other Lease is open.
func paidOnce(run string) func(h *hostile) error {
	return func(h *hostile) error {
		if err := saying(run, rqv1.RunRunning, "")(h); err != nil {
			return err
		}
		return differs(map[string]int32{"team/all own Active": 8}, h.payers(run))
	}
}

// disown has the invariants not ask for the Lease of a pod that somebody else than the scheduler has bound.
func (h *hostile) disown(pod string) {
	h.ledger.mutex.Lock()
	defer h.ledger.mutex.Unlock()
	maps.DeleteFunc(h.ledger.bound[h.namespace], func(_, name string) bool { return name == pod })
}
