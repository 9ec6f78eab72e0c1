package budget

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// The worked examples of the design, as far as they are about who pays.

func TestExample1LoweredBudget(t *testing.T) {
	a := accountsOf(flat("team-a", "org:a", 48), flat("team-b", "org:b", 24))
	run := func(name string, owner rqv1.Owner, gpus, pods, minute int) []string {
		t.Helper()
		return start(t, a, name, Ask{Owner: owner, Flavor: "H100", GPUsPerPod: gpus}, pods,
			noon.Add(time.Duration(minute)*time.Minute))
	}
	same(t, "J1", []string{"team-a/e 32 (own)"}, run("j1", "org:a", 4, 8, 0))
	same(t, "J2", []string{"team-b/e 24 (own)"}, run("j2", "org:b", 8, 3, 1))
	same(t, "J3", []string{"team-a/e 2 (own)"}, run("j3", "org:a", 2, 1, 2))
	now := noon.Add(time.Hour)
	same(t, "changed before the cut", []string(nil), a.Refresh(now))
	lowered := flat("team-a", "org:a", 24)
	a.SetBudget(lowered)
	same(t, "changed by the cut", []string{"ns/j1-006", "ns/j1-007", "ns/j3-000"}, a.Refresh(now))
	same(t, "overdraft", []Overdraft{{Key{"team-a", "e"}, 10, CauseConcurrency}}, a.Overdrafts("team-a"))
	same(t, "overdraft of J1 and J3", []int{0, 4, 4, 2}, []int{a.OverdraftOf("ns/j1-005"), a.OverdraftOf("ns/j1-006"),
		a.OverdraftOf("ns/j1-007"), a.OverdraftOf("ns/j3-000")})
	got := a.Status(lowered, now).Envelopes[0]
	same(t, "owned and overdraft", []int32{24, 10}, []int32{got.OwnedGPUs, got.OverdraftGPUs})
	same(t, "new work", []string{"nobody"}, run("j5", "org:a", 1, 1, 70))
	a.SetBudget(flat("team-a", "org:a", 56))
	same(t, "changed by raising it", []string{"ns/j1-006", "ns/j1-007", "ns/j3-000"}, a.Refresh(now))
	same(t, "new work within what is there again", []string{"team-a/e 22 (own)"}, run("j4", "org:a", 2, 11, 80))
}

func TestExample2Family(t *testing.T) {
	a := accountsOf(flat("org", "org:ai", 120), flat("rai", "org:ai:rai", 64), flat("al", "org:ai:rai:al", 48),
		flat("sys", "org:ai:rai:sys", 16),
		flat("mm", "org:ai:mm", 40), flat("vis", "org:ai:mm:vis", 28), flat("aud", "org:ai:mm:aud", 12))
	run := func(name string, owner rqv1.Owner, gpus, spares int) []string {
		t.Helper()
		return start(t, a, name, Ask{Owner: owner, Flavor: "H100", GPUsPerPod: 4, Spares: spares / 4}, (gpus+spares)/4, noon)
	}
	same(t, "RA1", []string{"al/e 48 (own)", "sys/e 16 (sibling)", "rai/e 8 spare (ancestor)"},
		run("ra1", "org:ai:rai:al", 64, 8))
	same(t, "RA2", []string{"rai/e 16 (ancestor)"}, run("ra2", "org:ai:rai:sys", 16, 0))
	same(t, "MM1", []string{"vis/e 28 (own)", "aud/e 12 (sibling)", "mm/e 8 (ancestor)"},
		run("mm1", "org:ai:mm:vis", 48, 0))
	same(t, "MM2", []string{"mm/e 4 (ancestor)"}, run("mm2", "org:ai:mm:aud", 4, 0))
	same(t, "usage", map[Key]int{{"al", "e"}: 48, {"sys", "e"}: 16, {"rai", "e"}: 24, {"vis", "e"}: 28, {"aud", "e"}: 12,
		{"mm", "e"}: 12}, a.Usage())
	same(t, "what is payable for MM3", 28+120, a.Cover(Ask{Owner: "org:ai:mm:vis", Flavor: "H100", GPUsPerPod: 4},
		noon).Payable())
	same(t, "overdraft", []string(nil), a.Refresh(noon))
}

func TestExample5CoFunded(t *testing.T) {
	lender := of("vision", "org:mm:vision", rqv1.Envelope{Name: "e", Concurrency: 256,
		Lending: &rqv1.Lending{Allow: true, To: []rqv1.ACLEntry{"org:ai:*"}, MaxConcurrency: ptr(int32(64))}})
	a := accountsOf(flat("rai", "org:ai:rai", 96), lender)
	ask := Ask{Owner: "org:ai:rai", Flavor: "H100", GPUsPerPod: 8, Funding: from("org:mm:vision")}
	ask.Funding.MaxBorrowGPUs = ptr(int32(32))
	same(t, "payers of 136", []string{"nobody"}, start(t, a, "train", ask, 17, noon))
	same(t, "payers of 128", []string{"rai/e 96 (own)", "vision/e 32 (sponsor)"}, start(t, a, "train", ask, 16, noon))
	got := a.Status(lender, noon).Envelopes[0]
	same(t, "lent, headroom and lendable", []int32{32, 224, 32}, []int32{got.LentGPUs, got.HeadroomGPUs, got.LendableGPUs})
}
