package controllers

import (
	"context"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// withObjects is an API server that has objects of any kind, by KIND/NAME.
type withObjects struct {
	client.WithWatch
	has map[string]map[string]any
}

func (c *withObjects) Get(ctx context.Context, key client.ObjectKey, o client.Object, how ...client.GetOption) error {
	object, is := o.(*unstructured.Unstructured)
	if !is {
		return c.WithWatch.Get(ctx, key, o, how...)
	}
	if has := c.has[object.GetKind()+"/"+key.Name]; has != nil {
		object.Object = maps.Clone(has)
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: object.GetKind()}, key.Name)
}

// apart is a pod of Job j which keeps the pods of all other Jobs of JobSets away from where it runs.
func apart(name string) *corev1.Pod {
	const jobKey = "jobset.sigs.k8s.io/job-key"
	yes, pod := true, inGroup(name, "default")
	pod.Labels = map[string]string{jobKey: "key-of-j"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "u-j",
		Controller: &yes}}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "rack",
			NamespaceSelector: &metav1.LabelSelector{},
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: jobKey, Operator: metav1.LabelSelectorOpExists},
				{Key: jobKey, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"key-of-j"}}}}}}}}
	return pod
}

const (
	jobOfASet = `{apiVersion: batch/v1, kind: Job, metadata: {name: j, uid: u-j,
labels: {jobset.sigs.k8s.io/job-key: key-of-j},
ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: s, uid: u-s, controller: true}]}}`
	setOfTheJob = `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: s, uid: u-s}}`
)

// TestOnlyAJobSetKeepsOtherNamespacesAway: who writes its label and its rule himself is told, before his group starts
// and afterwards, and others of the group are not hurt.
func TestOnlyAJobSetKeepsOtherNamespacesAway(t *testing.T) {
	plain := strings.Split(jobOfASet, ",\nownerReferences")[0] + "}}"
	for name, c := range map[string]struct {
		job, set string
		waits    bool
	}{
		"a Job of a JobSet":             {jobOfASet, setOfTheJob, true},
		"no Job":                        {"", setOfTheJob, false},
		"a Job of nobody's":             {plain, setOfTheJob, false},
		"a Job of no JobSet":            {jobOfASet, "", false},
		"a Job of a JobSet before this": {jobOfASet, strings.Replace(setOfTheJob, "u-s", "u-other", 1), false},
		"a Job of something else":       {strings.ReplaceAll(jobOfASet, "JobSet,", "Job,"), setOfTheJob, false},
		"another Job of that name":      {strings.Replace(jobOfASet, "u-j", "u-other", 1), setOfTheJob, false},
		"a Job with another key":        {strings.Replace(jobOfASet, "key-of-j", "key-of-k", 1), setOfTheJob, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrouped(t)
			g.named("o")
			objects := &withObjects{g.groups.client, map[string]map[string]any{}}
			for kind, text := range map[string]string{"Job/j": c.job, "JobSet/s": c.set} {
				object := map[string]any{}
				if err := yaml.Unmarshal([]byte(text), &object); err != nil {
					t.Fatal(err)
				}
				if text != "" {
					objects.has[kind] = object
				}
			}
			g.groups.client = objects
			is := func(what string, pod *corev1.Pod, offered ...string) {
				t.Helper()
				told := strings.Contains(g.toldOf(pod), "requires pods of other namespaces to keep away")
				if told == c.waits {
					t.Errorf("%s: it is told %q", what, g.toldOf(pod))
				}
				if len(offered) > 0 {
					g.wantOffered(what, offered...)
				}
			}
			alone := apart("alone")
			alone.Annotations = map[string]string{rqv1.AnnotationOwner: "o"}
			g.groups.note(alone)
			if wrote, _ := g.looks(alone); (len(wrote) == 1) != c.waits {
				t.Errorf("alone: %v is written", wrote)
			}
			is("alone", alone)
			if c.waits {
				return
			}
			first, joins := inGroup("a", "default"), apart("b")
			g.groups.note(first)
			g.groups.note(joins)
			g.want("another of its group", first, "create")
			g.want("it waits", first)
			is("before the group starts", joins, "a")
			g.starts()
			g.has(first)
			g.groups.note(joins)
			g.want("it runs", first)
			is("when it runs", joins)
			g.wantOffered("when it runs")
		})
	}
}
