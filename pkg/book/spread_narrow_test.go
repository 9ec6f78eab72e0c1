package book_test

import "testing"

// A Run whose volume one domain reaches, and whose pods are to be spread over domains, starts with as many as may lie
// there: where rules would have more of them is no plan's, and what nodes have said then counts, at whatever width.
func TestARunOfOneDomainThatIsToBeSpreadOverDomains(t *testing.T) {
	tell(t, func(w *world) {
		w.asks(true)
		w.zoned(len("d0"))
		w.fleet("d0", 2)
		w.fleet("d1", 2)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 1, 6, 2, 0, ungrouped, elastic(2, 2),
			spreadOver("fabric.domain", 2), sharing)
		w.rounds(3)
		w.running("run0", "although two of its pods may lie in one domain")
		if got := w.Runs["run0"].Status.Width.Allocated; got != 4 {
			w.t.Fatalf("it has %d GPUs, want 4", got)
		}
	})
}
