package controllers

import (
	"context"
	"fmt"
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
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// withObjects is an API server that has objects of any kind, by KIND/NAME.
type withObjects struct {
	client.WithWatch
	has map[string]map[string]any
	// gets counts what is read, of which number broken fails.
	gets, broken int
}

func (c *withObjects) Get(ctx context.Context, key client.ObjectKey, o client.Object, how ...client.GetOption) error {
	object, is := o.(*unstructured.Unstructured)
	if !is {
		return c.WithWatch.Get(ctx, key, o, how...)
	}
	c.gets++
	if c.gets == c.broken {
		return apierrors.NewServiceUnavailable("it is away")
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
			objects := &withObjects{WithWatch: g.groups.client, has: map[string]map[string]any{}}
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

// TestWhatMadePodsIsReadOnce for all pods of a group, and not again for a while, whether a JobSet made them or not.
// What was read before an error is not read again.
func TestWhatMadePodsIsReadOnce(t *testing.T) {
	for what, c := range map[string]struct {
		jobs        int
		there       bool
		broken      int
		first, then int // reads
		fails       bool
	}{
		"of a Job of a JobSet":              {jobs: 1, there: true, first: 2, then: 0},
		"of a Job that is not there":        {jobs: 1, first: 1, then: 0},
		"of a hundred Jobs of a JobSet":     {jobs: 100, there: true, first: 101, then: 0},
		"of a hundred, and the last breaks": {jobs: 100, there: true, broken: 101, first: 101, then: 2, fails: true},
	} {
		t.Run(what, func(t *testing.T) {
			g := newGrouped(t)
			objects := &withObjects{WithWatch: g.groups.client, has: map[string]map[string]any{}, broken: c.broken}
			g.groups.client = objects
			has := func(kind, name, text string) {
				object := map[string]any{}
				if err := yaml.Unmarshal([]byte(text), &object); err != nil {
					t.Fatal(err)
				}
				objects.has[kind+"/"+name] = object
			}
			has("JobSet", "s", setOfTheJob)
			var pods []*corev1.Pod
			for i := range 100 {
				pod, job := apart(fmt.Sprintf("p-%d", i)), fmt.Sprintf("j-%d", i%c.jobs)
				pod.OwnerReferences[0].Name = job
				pods = append(pods, pod)
				if c.there {
					has("Job", job, jobOfASet)
				}
			}
			key := group.Of(pods[0]).Key
			reads := func(when string, want int, fails bool) {
				t.Helper()
				objects.gets = 0
				left, err := g.groups.asMade(t.Context(), key, pods)
				if objects.gets != want || (err != nil) != fails || !fails && (len(left) == len(pods)) != c.there {
					t.Errorf("%s: %d objects are read, want %d; %d pods are left (%v)", when, objects.gets, want, len(left), err)
				}
			}
			reads("the first time", c.first, c.fails)
			objects.broken = 0
			reads("again", c.then, false)
			g.clock.Step(denialFor)
			if !c.there {
				reads("after a while", c.first, false)
			} else {
				reads("after a while", 0, false)
			}
		})
	}
}
