package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// question is a Run that is asked about and is not there.
type question struct {
	run *rqv1.Run
	// names is what people call it, if that is not its own name.
	names session.Names
	// notes say what is taken for granted, and unread what could not be read.
	notes, unread []string
	// like is what questions have in common that have the same answer, and alike how many there are.
	like  string
	alike int
}

// theirs returns the Runs that would stand for the groups of pods which some objects make, one for those that are
// alike. Its error says why there would be none for any of them.
func (p *planner) theirs(ctx context.Context, c client.Client, types []string, objects []map[string]any) ([]question,
	error) {
	rules, err := world.GroupRules(ctx, c)
	if err != nil {
		return nil, err
	}
	rules.Reads = reads(ctx, c)
	for _, object := range objects {
		if o := (&unstructured.Unstructured{Object: object}); o.GetName() == "" && len(group.TemplatesOf(object)) > 0 {
			return nil, session.Fail(session.ExitError, "%s %s*: metadata.generateName: a group of pods is known by a name: "+
				"give "+
				"metadata.name to plan it", o.GetKind(), o.GetGenerateName())
		}
	}
	objects, err = group.Assemble(objects, func(apiVersion string, is group.Key) (map[string]any, error) {
		return runtimeThere(ctx, c, apiVersion, is)
	})
	if err != nil {
		return nil, session.Fail(session.ExitError, "%v", err)
	}
	groups, err := group.Imagine(rules, objects)
	if err != nil {
		return nil, session.Fail(session.ExitError, "%v", err)
	}
	var out []question
	var problems []string
	for _, o := range groups {
		o.Types = types
		q, problem, err := p.ask(ctx, c, o, objects)
		switch {
		case err != nil:
			return nil, err
		case problem != "":
			problems = append(problems, problem)
		case q.run != nil:
			if i := slices.IndexFunc(out, func(other question) bool { return other.like == q.like }); i >= 0 {
				out[i].alike++
			} else {
				out = append(out, q)
			}
		}
	}
	if len(problems) > 0 {
		return nil, session.Fail(session.ExitError, "%s", strings.Join(slices.Compact(problems), "\nError: "))
	}
	for i := range out {
		if out[i].alike > 0 {
			out[i].notes = append(out[i].notes, fmt.Sprintf("there would be %d more like it; each is planned by itself",
				out[i].alike))
		}
	}
	return out, nil
}

// reads returns what reports whether the scheduler may read an object: by its ClusterRole, or as that is installed for
// who may not read it.
func reads(ctx context.Context, c client.Client) func(group.Key) bool {
	var role rbacv1.ClusterRole
	if err := c.Get(ctx, client.ObjectKey{Name: group.ReaderRole}, &role); err != nil {
		return group.ReadsKnown
	}
	return group.ReadsBy(role.Rules)
}

// runtimeThere reads what an object takes its pod template from.
func runtimeThere(ctx context.Context, c client.Client, apiVersion string, is group.Key) (map[string]any, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(is.Kind)
	err := c.Get(ctx, client.ObjectKey{Namespace: is.Namespace, Name: is.Name}, object)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, errors.New("it is not there: give it with -f too")
	case err != nil:
		return nil, fmt.Errorf("%s: give it with -f too", session.Refusal(err))
	}
	return object.Object, nil
}

// ask returns the Run that would stand for a group, or what is wrong with that. A group that asks for no GPUs has none.
func (p *planner) ask(ctx context.Context, c client.Client, o *group.Observed, objects []map[string]any) (q question,
	problem string, err error) {
	if o.Namespace, err = namespaceOf(ctx, c, o.Key.Namespace, objects); err != nil {
		q.unread = append(q.unread, fmt.Sprintf("annotations of namespace %s: %s", o.Key.Namespace, session.Refusal(err)))
	}
	d := group.Derive(o)
	switch {
	case d.Problem != "":
		return q, d.Problem, nil
	case d.Waits != "":
		return q, fmt.Sprintf("%s would not start: %s", o.Key, d.Waits), nil
	case d.Spec == nil:
		return q, "", nil
	}
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: o.Key.Namespace, Name: d.Name}, Spec: *d.Spec}
	if err := c.Get(ctx, client.ObjectKeyFromObject(run), &rqv1.Run{}); err == nil {
		return q, fmt.Sprintf("%s is there already: see \"kubectl runs plan -n %s %s\"", o.Key, o.Key.Namespace, o.Key), nil
	}
	if d.Note != "" {
		q.notes = append(q.notes, d.Note)
	}
	q.names = session.NamesOf([]rqv1.Run{*run})
	model := o.Pods[slices.IndexFunc(o.Pods, func(pod *corev1.Pod) bool { return o.GPUs(&pod.Spec) > 0 })]
	problem, unasked := mayPay(ctx, c, model, run.Spec.Owner)
	if problem != "" {
		return q, problem, nil
	}
	if unasked != "" {
		q.unread = append(q.unread, unasked)
	}
	for _, object := range objects {
		if slices.ContainsFunc(o.Above, func(s group.Said) bool { return s.By == group.NameOf(object) }) {
			q.notes = append(q.notes, notesOn(object)...)
		}
	}
	// what is planned is where these pods would fit, which their template says
	run.Spec.Source, run.Spec.Pods = "", nil
	run.Spec.Template = templateLike(model)
	q.run, q.like = run, likeness(o, run)
	return q, "", nil
}

// notesOn says what an object that would make pods says of when, which is not asked about.
func notesOn(object map[string]any) (notes []string) {
	if path := group.Suspended(object); path != "" {
		notes = append(notes, fmt.Sprintf("%s makes no pods while %s is true: asked about as if it were not",
			group.NameOf(object), path))
	}
	for _, d := range group.Deadlines(object) {
		notes = append(notes, fmt.Sprintf("%s: %d of %s counts while its pods wait, too, and ends what has never run: leave "+
			"it out, and say how long it may run by annotation %s", d.Path, d.Seconds, group.NameOf(object),
			rqv1.AnnotationMaxDuration))
	}
	return notes
}

// likeness is what groups have in common that differ by their numbers alone.
func likeness(o *group.Observed, run *rqv1.Run) string {
	by := o.Key.String()
	if len(o.Above) > 0 {
		by = o.Above[len(o.Above)-1].By
	}
	spec := run.Spec
	spec.Template = &corev1.PodTemplateSpec{Spec: spec.Template.Spec}
	text, err := json.Marshal(&spec)
	if err != nil {
		return run.Name // it is like no other
	}
	return fmt.Sprintf("%s/%s by %s: %s", o.Key.Namespace, o.Key.Kind, by, text)
}

// namespaceOf returns the annotations of a namespace, as it would be if some objects were made.
func namespaceOf(ctx context.Context, c client.Client, name string, objects []map[string]any) (map[string]string,
	error) {
	for _, object := range objects {
		if o := (&unstructured.Unstructured{Object: object}); o.GetKind() == "Namespace" && o.GetName() == name {
			return o.GetAnnotations(), nil
		}
	}
	var space corev1.Namespace
	err := c.Get(ctx, client.ObjectKey{Name: name}, &space)
	return space.Annotations, client.IgnoreNotFound(err)
}

// mayPay says why the service account of a pod may not spend as an owner (R10, R41), or that it could not be asked.
func mayPay(ctx context.Context, c client.Client, pod *corev1.Pod, owner rqv1.Owner) (refused, unasked string) {
	review := &authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace},
		Spec: group.MayPay(pod, owner)}
	switch err := c.Create(ctx, review); {
	case apierrors.IsForbidden(err):
		return "", fmt.Sprintf("whether service account %s may spend as %s, which you may not check: if it may not, its "+
			"pods stay Pending", group.AccountOf(pod), owner)
	case err != nil:
		return "", fmt.Sprintf("whether service account %s may spend as %s: %s", group.AccountOf(pod), owner,
			session.Refusal(err))
	case !review.Status.Allowed:
		return group.MayNotPay(pod, owner), ""
	}
	return "", ""
}

// templateLike is a template of pods that fit where a pod does. What a Run's template may not say, and has no part in
// that, is left out.
func templateLike(pod *corev1.Pod) *corev1.PodTemplateSpec {
	template := &corev1.PodTemplateSpec{Spec: *pod.Spec.DeepCopy()}
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	for key, value := range pod.Labels {
		if !strings.HasPrefix(key, rqv1.GroupName+"/") {
			metav1.SetMetaDataLabel(&template.ObjectMeta, key, value)
		}
	}
	return template
}
