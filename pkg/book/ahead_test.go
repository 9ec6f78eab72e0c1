package book_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A Run that is promised to borrow takes from what the sponsor lends as a borrower: another one gets no date on the
// same money, also after a restart, and although the sponsor itself has more.
func TestAPromiseToABorrowerTakesFromWhatIsLent(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 3)
		most := int32(8)
		w.setBudget("l", "lender", 64)
		b := w.Budgets["l"].DeepCopy()
		b.Spec.Envelopes[0].Lending = &rqv1.Lending{Allow: true, To: []rqv1.ACLEntry{"*"}, MaxConcurrency: &most}
		b.Generation += 1000
		w.SetBudget(b)
		w.submitWithSpares("run0", "lender", 1, 3, 8, 0, func(s *rqv1.RunSpec) {
			s.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: 5 * time.Minute}}
		})
		w.settle()
		borrows := func(s *rqv1.RunSpec) {
			s.Funding = &rqv1.RunFunding{AllowBorrow: true, Sponsors: []rqv1.Owner{"lender"}}
		}
		for _, run := range []string{"run1", "run2"} {
			w.submitWithSpares(run, "owner:of:"+rqv1.Owner(run), 1, 1, 8, 0, borrows)
			w.Pass(time.Second)
		}
		w.rounds(3)
		for _, when := range []string{"at first", "after a restart"} {
			if p := w.Book.Prospect(w.Runs["run1"].UID).Promise; p == nil {
				w.t.Fatalf("run1 has no date %s: %+v", when, w.Book.Refusal(w.Runs["run1"].UID))
			}
			if p := w.Book.Prospect(w.Runs["run2"].UID).Promise; p != nil {
				w.t.Fatalf("run2 is promised %+v %s, on what run1 borrows", p, when)
			}
			w.crash()
			w.rounds(3)
		}
	})
}
