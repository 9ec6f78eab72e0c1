package budget

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

func TestHowFarAnEditReaches(t *testing.T) {
	hours, gpus, at := int64(10), int32(4), metav1.NewTime(time.Unix(1000, 0))
	was := &rqv1.Budget{Spec: rqv1.BudgetSpec{Owner: "org:a",
		Envelopes:     []rqv1.Envelope{{Name: "e", Flavor: "H100", Concurrency: 8, Lending: &rqv1.Lending{Allow: true}}},
		AggregateCaps: []rqv1.AggregateCap{{Name: "c", Flavor: "H100", Envelopes: []string{"e"}}}}}
	for name, c := range map[string]struct {
		edit func(*rqv1.BudgetSpec)
		want Edit
	}{
		"the hours of an envelope": {func(s *rqv1.BudgetSpec) { s.Envelopes[0].MaxGPUHours = &hours }, Hours},
		"the hours that it lends":  {func(s *rqv1.BudgetSpec) { s.Envelopes[0].Lending.MaxGPUHours = &hours }, Hours},
		"the hours of a cap":       {func(s *rqv1.BudgetSpec) { s.AggregateCaps[0].MaxGPUHours = &hours }, Hours},
		"hours and GPUs": {func(s *rqv1.BudgetSpec) {
			s.Envelopes[0].MaxGPUHours, s.Envelopes[0].Concurrency = &hours, 9
		}, Amounts},
		"the GPUs that it lends": {func(s *rqv1.BudgetSpec) { s.Envelopes[0].Lending.MaxConcurrency = &gpus }, Amounts},
		"the GPUs of a cap":      {func(s *rqv1.BudgetSpec) { s.AggregateCaps[0].MaxConcurrency = &gpus }, Amounts},
		"a window":               {func(s *rqv1.BudgetSpec) { s.Envelopes[0].Start = &at }, Amounts},
		"to whom it lends":       {func(s *rqv1.BudgetSpec) { s.Envelopes[0].Lending.To = []rqv1.ACLEntry{"*"} }, Relations},
		"the owner":              {func(s *rqv1.BudgetSpec) { s.Owner = "org:b" }, Relations},
		"another envelope": {func(s *rqv1.BudgetSpec) {
			s.Envelopes = append(s.Envelopes, rqv1.Envelope{Name: "f", Flavor: "H100"})
		}, Relations},
	} {
		is := was.DeepCopy()
		c.edit(&is.Spec)
		if got := EditOf(was, is); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := EditOf(nil, was); got != Relations {
		t.Errorf("a new Budget: %d", got)
	}
}

func TestBudgetsOfWhichAWindowPasses(t *testing.T) {
	a, at := NewAccounts(Rates{}), func(s int64) *metav1.Time { at := metav1.NewTime(time.Unix(s, 0)); return &at }
	for name, e := range map[string]rqv1.Envelope{"opens": {Start: at(10)}, "closes": {Start: at(5), End: at(20)},
		"opened": {Start: at(5)}, "later": {Start: at(21)}, "always": {}} {
		a.SetBudget(&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: rqv1.BudgetSpec{Envelopes: []rqv1.Envelope{e}}})
	}
	if diff := cmp.Diff([]string{"closes", "opens"}, a.Edged(time.Unix(5, 0), time.Unix(20, 0))); diff != "" {
		t.Error(diff)
	}
}
