package v1_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// podsPolicy is the policy for pods, as an API server compiles it.
func podsPolicy(t *testing.T) validating.Validator {
	t.Helper()
	data, err := os.ReadFile("../../../../manifests/policy/pods.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	if err := yaml.UnmarshalStrict([]byte(strings.SplitN(string(data), "\n---\n", 2)[0]), &policy); err != nil {
		t.Fatal(err)
	}
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	var variables []cel.NamedExpressionAccessor
	for _, v := range policy.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	var rules, messages []cel.ExpressionAccessor
	for _, v := range policy.Spec.Validations {
		rules = append(rules, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		if v.MessageExpression == "" {
			messages = append(messages, nil)
			continue
		}
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	compiler.CompileAndStoreVariables(variables, cel.OptionalVariableDeclarations{}, environment.StoredExpressions)
	compile := func(of []cel.ExpressionAccessor) cel.ConditionEvaluator {
		return compiler.CompileCondition(of, cel.OptionalVariableDeclarations{}, environment.StoredExpressions)
	}
	return validating.NewValidator(compile(rules), nil, compile(nil), compile(messages), policy.Spec.FailurePolicy, nil)
}

// refusals are what the policy says against a change of a pod.
func refusals(t *testing.T, policy validating.Validator, before, after *corev1.Pod) (out []string) {
	t.Helper()
	kind, resource := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
	by := &user.DefaultInfo{Name: "ann", Groups: []string{user.AllAuthenticated}}
	attributes := admission.NewAttributesRecord(after, before, kind, after.Namespace, after.Name, resource, "",
		admission.Update, &metav1.UpdateOptions{}, false, by)
	change := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind,
		VersionedObject: admission.NewLazyObject(after), VersionedOldObject: admission.NewLazyObject(before)}
	result := policy.Validate(t.Context(), resource, change, nil, &corev1.Namespace{}, celconfig.RuntimeCELCostBudget, nil)
	for _, d := range result.Decisions {
		if d.Action != validating.ActionAdmit {
			out = append(out, d.Message)
		}
	}
	return out
}

// Nobody fills a pod of a Run up: those of others are none of ours, and what is there may change.
func TestPodsOfRunsAreNotFilledUp(t *testing.T) {
	policy := podsPolicy(t)
	pod := func(ours bool, labels, annotations, finalizers int) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train-0", Labels: map[string]string{},
			Annotations: map[string]string{}}}
		if ours {
			labels--
			p.Labels[rqv1.LabelRun] = "train"
		}
		for i := range labels {
			p.Labels[fmt.Sprint("label-", i)] = ""
		}
		for i := range annotations {
			p.Annotations[fmt.Sprint("note-", i)] = strings.Repeat("x", 1000)
		}
		for i := range finalizers {
			p.Finalizers = append(p.Finalizers, fmt.Sprint("example.com/f", i))
		}
		return p
	}
	for name, c := range map[string]struct {
		before, after *corev1.Pod
		refused       bool
	}{
		"as many as may be":             {pod(true, 10, 2, 0), pod(true, 100, 26, 2), false},
		"too many labels":               {pod(true, 10, 2, 0), pod(true, 129, 0, 0), true},
		"too many annotations":          {pod(true, 10, 2, 0), pod(true, 1, 128, 0), true},
		"too many finalizers":           {pod(true, 10, 2, 0), pod(true, 1, 0, 128), true},
		"of another's pod":              {pod(false, 10, 2, 0), pod(false, 5000, 100, 100), false},
		"a template that has them":      {pod(true, 200, 0, 0), pod(true, 198, 0, 2), false},
		"and another":                   {pod(true, 200, 0, 0), pod(true, 201, 0, 0), true},
		"of a pod with very many, less": {pod(true, 5000, 200, 200), pod(true, 4000, 200, 200), false},
	} {
		got := refusals(t, policy, c.before, c.after)
		if refused := len(got) > 0; refused != c.refused || refused && !strings.Contains(got[0], "up to 128 in all") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestControllersAdoptPodsThatAreTheirs, and release them: only what the scheduler has made is tied to its Run. What a
// pod is in its Run stays the scheduler's word for both.
func TestControllersAdoptPodsThatAreTheirs(t *testing.T) {
	policy, controls := podsPolicy(t), true
	pod := func(source rqv1.RunSource, owner string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train-0",
			Labels: map[string]string{rqv1.LabelRun: "train"}}}
		if source != "" {
			p.Labels[rqv1.LabelSource] = string(source)
		}
		if owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner, UID: "u",
				Controller: &controls}}
		}
		return p
	}
	const tied, marked = "metadata.ownerReferences: they tie a pod", "metadata.labels: labels under"
	for name, c := range map[string]struct {
		before, after *corev1.Pod
		says          string
	}{
		"a ReplicaSet adopts one of others":   {pod(rqv1.SourcePods, ""), pod(rqv1.SourcePods, "web"), ""},
		"and releases it":                     {pod(rqv1.SourcePods, "web"), pod(rqv1.SourcePods, ""), ""},
		"and it gets another":                 {pod(rqv1.SourcePods, "web"), pod(rqv1.SourcePods, "anew"), ""},
		"one of a Run is adopted":             {pod("", ""), pod("", "web"), tied},
		"one of a Run is released":            {pod("", "web"), pod("", ""), tied},
		"one of a Run is taken for another's": {pod("", "web"), pod(rqv1.SourcePods, ""), marked},
		"one of others is taken for a Run's":  {pod(rqv1.SourcePods, ""), pod("", ""), marked},
	} {
		got := strings.Join(refusals(t, policy, c.before, c.after), "; ")
		if c.says == "" && got != "" || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
