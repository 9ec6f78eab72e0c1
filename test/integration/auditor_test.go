package integration

import (
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// auditsAsAuditor has somebody audit the site who has what docs/operators.md gives auditors, and no more: everything
// can be read, and nothing written.
func (s *site) auditsAsAuditor() {
	s.t.Helper()
	mustCommand(s.t, s.ControlPlane, "",
		"create clusterrolebinding auditors --clusterrole=jobtree-auditor --group=auditors")
	mustCommand(s.t, s.ControlPlane, "",
		"-n jobtree-system create rolebinding auditors --role=jobtree-auditor --group=auditors")
	const eve = "--as eve --as-group auditors"
	eventually(s.t, "an auditor's audit", func() error { // the authorizer learns of bindings one by one
		if said := command(s.t, s.ControlPlane, "", "runs audit --wait 1s "+eve); said.code != 0 {
			return fmt.Errorf("exit code %d: %s%s", said.code, said.err, said.out)
		}
		return nil
	})
	config := s.AdminConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: "eve", Groups: []string{"auditors", "system:authenticated"}}
	as, err := client.New(config, client.Options{Scheme: s.api.Scheme(), Mapper: s.api.RESTMapper()})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, namespace := range []string{s.namespace, "jobtree-system"} {
		review := &authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
		if err := as.Create(s.t.Context(), review); err != nil {
			s.t.Fatal(err)
		}
		for _, rule := range review.Status.ResourceRules {
			asks := slices.Equal(rule.Verbs, []string{"create"}) && // everybody may ask who he is and what he may do
				(slices.Equal(rule.APIGroups, []string{"authorization.k8s.io"}) ||
					slices.Equal(rule.APIGroups, []string{"authentication.k8s.io"}))
			if writes := slices.ContainsFunc(rule.Verbs, func(verb string) bool {
				return !slices.Contains([]string{"get", "list", "watch"}, verb)
			}); writes && !asks {
				s.t.Errorf("in namespace %s an auditor may %v", namespace, rule)
			}
		}
	}
	for _, write := range []string{
		"delete leases.rq.davidlangworthy.io --all -n " + s.namespace, "delete runs.rq.davidlangworthy.io --all -n " +
			s.namespace,
		"delete configmaps --all -n jobtree-system", "delete nodes --all", "create configmap evil -n jobtree-system",
	} {
		if said := command(s.t, s.ControlPlane, "", write+" "+eve); said.code == 0 {
			s.t.Errorf("%s: %s", write, said.out)
		}
	}
}
