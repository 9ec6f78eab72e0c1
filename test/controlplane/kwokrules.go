package controlplane

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// kwokUser is who kwok is to the API server.
const kwokUser = "kwok"

// boundKwok has kwok end no pod that has not been told to go. It deletes by name, sometimes twice, and would end the
// next pod of that name, which no kubelet does.
func (c *ControlPlane) boundKwok(ctx context.Context) error {
	meta := metav1.ObjectMeta{Name: "kwok-ends-what-goes"}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: ptr.To(admissionv1.Ignore),
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Delete},
				Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}},
		}}},
		MatchConditions: []admissionv1.MatchCondition{{Name: "kwok",
			Expression: fmt.Sprintf("request.userInfo.username == %q", kwokUser)}},
		Validations: []admissionv1.Validation{{Expression: "has(oldObject.metadata.deletionTimestamp)",
			Message: "the pod has not been told to go: it is another of the name"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: meta.Name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}
	kinds := c.client.AdmissionregistrationV1()
	_, err := kinds.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		_, err = kinds.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("what kwok may end: %w", err)
	}
	return nil
}
