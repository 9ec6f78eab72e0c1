package integration

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// apiWarnings are what the API server says beside its answers.
type apiWarnings []string

// HandleWarningHeaderWithContext is called by the client for each warning.
func (w *apiWarnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	*w = append(*w, text)
}

// A lending list that admits a sibling whose name begins alike is accepted with a warning.
func TestLendingToAPrefixWarns(t *testing.T) {
	const refusal = "Validation failed for ValidatingAdmissionPolicy 'jobtree-lending' with binding 'jobtree-lending': "
	const rai = refusal + "spec.envelopes[east].lending.to: org:ai:rai* is a plain prefix and also admits an " +
		"owner such as " +
		"org:ai:raix; for org:ai:rai and all below it list org:ai:rai and org:ai:rai:*"
	config := apiServer(t).AdminConfig()
	var got apiWarnings
	config.WarningHandlerWithContext = &got
	scheme := runtime.NewScheme()
	if err := rqv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	by, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	lends := func(to ...rqv1.ACLEntry) *rqv1.Budget {
		budget := someBudget("authz-lending")
		budget.Spec.Envelopes = append(budget.Spec.Envelopes, rqv1.Envelope{
			Name: "east", Flavor: "H100-80GB", Concurrency: 8, Lending: &rqv1.Lending{Allow: true, To: to},
		})
		return budget
	}
	eventually(t, "the policy jobtree-lending", func() error {
		got = nil
		if err := by.Create(t.Context(), lends("org:ai:rai*"), client.DryRunAll); err != nil || len(got) > 0 {
			return err
		}
		return errors.New("it warns of nothing")
	})
	for _, c := range []struct {
		to   []rqv1.ACLEntry
		want apiWarnings
	}{
		{nil, nil},
		{[]rqv1.ACLEntry{"*"}, nil},
		{[]rqv1.ACLEntry{"org:ai:rai", "org:ai:rai:*", "org:*"}, nil},
		{[]rqv1.ACLEntry{"org:ai:rai", "org:ai:rai*"}, apiWarnings{rai}},
	} {
		got = nil
		budget := lends(c.to...)
		if err := by.Create(t.Context(), budget); err != nil {
			t.Fatalf("%v: %v", c.to, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("create with %v (-want +got):\n%s", c.to, diff)
		}
		got = nil
		budget.Spec.Envelopes[0].Concurrency++
		if err := by.Update(t.Context(), budget); err != nil {
			t.Fatalf("%v: %v", c.to, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("update with %v (-want +got):\n%s", c.to, diff)
		}
		remove(t, by, budget)
	}
}
