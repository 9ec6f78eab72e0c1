package group

import (
	"cmp"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// AccountOf returns the service account of a pod.
func AccountOf(pod *corev1.Pod) string { return cmp.Or(pod.Spec.ServiceAccountName, "default") }

// MayPay is the question whether the service account of a pod may spend as an owner (R10, R41).
func MayPay(pod *corev1.Pod, owner rqv1.Owner) authorizationv1.SubjectAccessReviewSpec {
	return authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + pod.Namespace + ":" + AccountOf(pod),
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + pod.Namespace,
			"system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: pod.Namespace, Verb: "use",
			Group: rqv1.GroupName, Resource: "owners", Name: string(owner)}}
}

// MayNotPay says that it may not, and what mends it.
func MayNotPay(pod *corev1.Pod, owner rqv1.Owner) string {
	return fmt.Sprintf("service account %s of namespace %s may not spend as %s: ask an administrator for a "+
		"RoleBinding in the namespace, for it or for group system:serviceaccounts:%s, to a Role with verb "+
		"use on owners.%s %s", AccountOf(pod), pod.Namespace, owner, pod.Namespace, rqv1.GroupName, owner)
}
