package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// labelHold is the label of a namespace in which one write is refused, and holds the name of that write.
const labelHold = "test.jobtree/hold"

// heldWrites are the writes of an activation, by the name of the step that the scheduler comes to before it.
var heldWrites = map[string]string{
	"refused":   `what == "reservations/" && request.operation == "CREATE"`,
	"reserved":  `what == "reservations/status" && has(object.status.lottery)`,
	"committed": `what == "reservations/status" && has(object.status.activatedAt)`,
	"published": `what == "reservations/status" && has(object.status.lottery) && has(object.status.lottery.nonce)`,
	"revealed":  `what == "pods/status" && object.status.?conditions.orValue([]).exists(c, c.type == "DisruptionTarget")`,
	"noticed":   `what == "pods/" && request.operation == "DELETE"`,
	"cut":       `false`, // finalizers hold the pods
	"left":      `what == "leases/status"`,
	"freed":     `what == "leases/" && request.operation == "CREATE"`,
	"leased":    `what == "pods/binding"`,
	"bound":     `what == "runs/status" && object.status.phase == "Running"`,
	"started":   `what == "reservations/status" && object.status.?state.orValue("") == "Released"`,
}

// installHolds has the API server refuse one of some writes in every namespace whose label names it.
func installHolds(t *testing.T, c *cluster, writes map[string]string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "test-holds"}
	rule := func(group string, resources ...string) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{"CREATE", "UPDATE", "DELETE"},
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: resources},
		}}
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{
			rule(rqv1.GroupName, "reservations", "reservations/status", "leases", "leases/status", "runs/status"),
			rule("", "pods", "pods/status", "pods/binding", "configmaps"),
		}},
		Variables: []admissionv1.Variable{
			{Name: "held", Expression: `namespaceObject.metadata.?labels["` + labelHold + `"].orValue("")`},
			{Name: "what", Expression: `[request.resource.resource, request.?subResource.orValue("")].join("/")`},
		},
		Validations: []admissionv1.Validation{{Expression: `variables.what != "configmaps/" || variables.held == ""`,
			Message: "held"}},
	}}
	for step, write := range writes {
		policy.Spec.Validations = append(policy.Spec.Validations, admissionv1.Validation{
			Expression: fmt.Sprintf(`variables.held != %q || [variables.what].all(what, !(%s))`, step, write), Message: "held",
		})
	}
	for _, object := range []client.Object{policy, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}} {
		if err := c.api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// hold has the writes of a step refused in the site's namespace; none with an empty step. It returns once that is so.
func (s *site) hold(step string) {
	s.t.Helper()
	edit(s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, func(n *corev1.Namespace) {
		n.Labels[labelHold] = step
	})
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "probe"}}
	eventually(s.t, "the hold of "+s.namespace, func() error {
		err := s.api.Create(s.t.Context(), probe.DeepCopy(), client.DryRunAll)
		if (err == nil) != (step == "") {
			return errors.Join(errors.New("it is not as it should be"), err)
		}
		return nil
	})
}

// killHeld kills the scheduler once each of some sites has come to its step and stays there, and then has another one
// go on that nothing holds.
func killHeld(c *cluster, steps []string, sites []*site, reached func(i int) error) {
	t := sites[0].t
	t.Helper()
	for i, step := range steps {
		eventually(t, step, func() error { return reached(i) })
	}
	throughout(t, time.Second, "all are to stay where they are held", func() error {
		for i := range steps {
			if err := reached(i); err != nil {
				return err
			}
		}
		return nil
	})
	if err := c.Scheduler.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, s := range sites {
		s.hold("")
	}
	sites[0].startScheduler()
}

// finalize sets the finalizers of a Run's pods: with one, a pod that ends stays until it is taken away.
func (s *site) finalize(run string, finalizers ...string) {
	s.t.Helper()
	for name := range s.podsOf(run) {
		edit(s, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}, func(pod *corev1.Pod) {
			pod.Finalizers = finalizers
		})
	}
}
