package budget

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// statement is one of docs/paying.md, with the rule that it tells of and what happens.
type statement struct {
	rule, text string
	holds      func(t *testing.T)
}

// theFamily is the one of docs/paying.md.
func theFamily() *Accounts {
	mm := flat("mm", "org:ai:mm", 32)
	mm.Spec.Envelopes[0].Lending = &rqv1.Lending{Allow: true, To: []rqv1.ACLEntry{"org:ai:rai:*"},
		MaxConcurrency: ptr(int32(16))}
	return accountsOf(flat("ai", "org:ai", 16), flat("rai", "org:ai:rai", 8), flat("al", "org:ai:rai:al", 24),
		flat("sys", "org:ai:rai:sys", 16), mm)
}

// big is the Run of AL that wants 80 GPUs.
func big(most int32) Ask {
	return Ask{Owner: "org:ai:rai:al", Flavor: "H100", GPUsPerPod: 8,
		Funding: &rqv1.RunFunding{AllowBorrow: true, MaxBorrowGPUs: &most, Sponsors: []rqv1.Owner{"org:ai:mm"}}}
}

func payable(a *Accounts, ask Ask) int { return a.Cover(ask, noon).Payable() }

func asks(owner rqv1.Owner) Ask { return Ask{Owner: owner, Flavor: "H100", GPUsPerPod: 8} }

// capOf has an envelope of 100 GPU-hours and a Run of 16 GPUs without a maxDuration that has run for 75 minutes.
func capOf(hours int64) *Accounts {
	a := accountsOf(of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 640, MaxGPUHours: &hours}))
	c := held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 16)
	c.Start = noon.Add(-75 * time.Minute)
	a.Open("ns/x", c)
	return a
}

// pays reports whether a Run of so many GPUs and such a time is covered at an instant.
func pays(a *Accounts, gpus int, lasts time.Duration, now time.Time) bool {
	ask := Ask{Owner: "o", Flavor: "H100", GPUsPerPod: 8, MaxDuration: lasts}
	return a.Cover(ask, now).Payable() >= gpus
}

// costs is what a Lease of 90 minutes is charged, and what it held.
func costs(role rqv1.LeaseRole, gpus int) (charged, held Spend) {
	a := accountsOf(flat("b", "o", 64))
	c := Charge{Payer: Key{"b", "e"}, Owner: "o", Relation: rqv1.RelationOwn, Role: role, GPUs: gpus, Rate: a.RateOf(role),
		Start: noon.Add(-90 * time.Minute)}
	a.Past("ns/x", c, noon)
	s := a.account(c.Payer).spent(noon)
	return s.all(), s.held
}

func equal(want, got any) func(*testing.T) {
	return func(t *testing.T) { t.Helper(); same(t, "what happens", want, got) }
}

// statements are those of docs/paying.md with a number, or that say never, always, until, nothing or nobody.
func statements(t *testing.T) []statement {
	t.Helper()
	return slices.Concat(whoPays(t), whatItCosts(), whatChanges())
}

func whoPays(t *testing.T) []statement {
	t.Helper()
	a := theFamily()
	paidFor := start(t, a, "big", big(16), 10, noon)
	al := []string{"al/e 24 (own)", "sys/e 16 (sibling)", "rai/e 8 (ancestor)", "ai/e 16 (ancestor)", "mm/e 16 (sponsor)"}
	return []statement{
		{"R2", "RAI's 8 GPUs are a separate pool, in addition to the 24 of AL and the 16 of SYS.",
			equal(48, payable(theFamily(), asks("org:ai:rai:al"))-16)},
		{"R2", "For AL that is AL 24, then SYS 16, then RAI 8, then AI 16: 64 GPUs in all.", equal(al[:4], paidFor[:4])},
		{"R2", "AL's money serves AL and SYS, never RAI.", func(t *testing.T) {
			for _, o := range theFamily().Cover(asks("org:ai:rai"), noon).Offers {
				if o.Key.Budget == "al" {
					t.Errorf("RAI is offered %+v", o)
				}
			}
		}},
		{"R2", "an envelope is open to the family unless it says `sharing: none`.", func(t *testing.T) {
			a := theFamily()
			a.Budget("sys").Spec.Envelopes[0].Sharing = rqv1.SharingNone
			same(t, "payable", 48, payable(a, asks("org:ai:rai:al")))
			same(t, "payable for its owner", 64, payable(a, asks("org:ai:rai:sys")))
		}},
		{"R2", "Its family has 64, so it asks MM for the rest:", equal(al, paidFor)},
		{"R1", "A pod has one payer at a time, and one for as long as it runs in all cases but one.",
			func(t *testing.T) {
				a := accountsOf(of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 4}, rqv1.Envelope{Name: "f", Concurrency: 4}))
				same(t, "payable in pods of 8", 0, payable(a, asks("o")))
			}},
		{"R2", "Now that AL uses SYS's GPUs, SYS waits until they are released. No Run loses GPUs because of its owner.",
			func(t *testing.T) {
				same(t, "payable for SYS", 0, payable(a, asks("org:ai:rai:sys")))
				same(t, "overdraft", []string(nil), a.Refresh(noon))
			}},
		{"R4", "An empty `to` admits nobody.", equal(false, Admits(nil, "o"))},
		{"R4", "Lending is not transitive: if MM lends to AL and AL lends to others, only AL can borrow from MM.",
			func(t *testing.T) {
				a := theFamily()
				a.Budget("al").Spec.Envelopes[0].Lending = lends("*")
				ask := asks("x")
				ask.Funding = from("org:ai:rai:al", "org:ai:mm")
				same(t, "payable", 24, payable(a, ask))
			}},
		{"R3", "A Run whose payers all select `us-west` never lands in `us-east`, however empty that is.",
			func(t *testing.T) {
				a := accountsOf(of("b", "o",
					rqv1.Envelope{Name: "e", Concurrency: 8, Selector: map[string]string{"region": "us-west"}}))
				c := a.Cover(asks("o"), noon)
				same(t, "the class of a node in us-east, which nobody pays for", -1,
					c.Class(map[string]string{"region": "us-east"}))
			}},
		{"R4", "So an entry in `lending.to` lets those that it admits see as much, and `*` everybody.", func(t *testing.T) {
			a := theFamily()
			a.Budget("mm").Spec.Envelopes[0].Lending.To = []rqv1.ACLEntry{"*"}
			same(t, "what would help", []Change{{"set spec.funding.allowBorrow of the Run to true and add org:ai:mm to " +
				"spec.funding.sponsors: it would lend 16 GPUs", 16}}, a.Changes(asks("x"), 24, noon))
		}},
		{"R4", "Of a sponsor that does not lend to its owner a Run is told nothing else, whether that sponsor has a Budget " +
			"or not.", func(t *testing.T) {
			ask := asks("x")
			ask.Funding = from("org:ai:mm", "none")
			same(t, "offers", []string{"1 sponsor mm/e: 0 pods, it does not lend to x, untold",
				"1 sponsor /: 0 pods, it does not lend to x", "2 sponsor /: 0 pods, it does not lend to x"},
				offers(theFamily().Cover(ask, noon)))
		}},
		{"R5", "Had `big` said `maxBorrowGPUs: 8`, it would wait with reason `BorrowLimit`, although MM would lend 16:",
			func(t *testing.T) {
				_, alone := theFamily().Cover(big(8), noon).BorrowLimit(80)
				same(t, "whether that limit is all", true, alone)
			}},
		{"R5, R7", "[Opportunistic](opportunistic.md) work counts under `maxBorrowGPUs` and under the caps on GPU-hours, " +
			"at its rate.", func(t *testing.T) {
			a := theFamily()
			ask := big(16)
			ask.Opportunistic, ask.Run = true, "run"
			for range 2 {
				c := held(Key{"mm", "e"}, ask.Owner, rqv1.RelationSponsor, rqv1.RoleBorrowed, 8)
				a.Open(string(rune('a'+len(a.charges))), c)
			}
			offers := a.Cover(ask, noon).Offers
			same(t, "pods that the sponsor pays for", 0, offers[len(offers)-1].Pods)
			same(t, "concurrency that they use", 0, a.Used(Key{"mm", "e"}))
		}},
	}
}

func whatItCosts() []statement {
	charged := func(role rqv1.LeaseRole, gpus int) Spend { spent, _ := costs(role, gpus); return spent }
	_, reported := costs(rqv1.RoleBorrowed, 8)
	hundred := capOf(100)
	at := hundred.account(Key{"b", "e"})
	spent := at.spent(noon)
	later := at.spent(noon.Add(time.Hour))
	fraction := func(ms int) time.Time { return time.Date(2026, 3, 1, 10, 0, 0, ms*1e6, time.UTC) }
	return []statement{
		{"R7", "A GPU-hour is 3,600 **GPU-seconds**.", equal(3600*GPUSecond, GPUHour)},
		{"R7", "| 16 | 90 minutes | 1 | 16 × 5,400 = 86,400 | 24 |",
			equal([]Spend{86400 * GPUSecond, 24 * GPUHour},
				[]Spend{charged(rqv1.RoleActive, 16), charged(rqv1.RoleActive, 16)})},
		{"R7", "| 8, as spares | 90 minutes | 0.5 | 8 × 5,400 × 0.5 = 21,600 | 6 |",
			equal([]Spend{21600 * GPUSecond, 6 * GPUHour}, []Spend{charged(rqv1.RoleSpare, 8), charged(rqv1.RoleSpare, 8)})},
		{"R7", "| 8, opportunistic | 90 minutes | 0 | 0 | 0, and 12 reported as held |",
			equal([]Spend{0, 12 * GPUHour}, []Spend{charged(rqv1.RoleBorrowed, 8), reported})},
		{"R7", "from 10:00:00.9 to 10:00:02.1 is 2.", equal(int64(2), seconds(fraction(900), fraction(2100)))},
		{"R7", "Sums are whole numbers, exact to a thousandth of a GPU-second.", equal(Spend(1), GPUSecond/1000)},
		{"R7", "its `maxDuration` if it has one, or else its next hour.",
			equal([]int64{3600, 3 * 3600}, []int64{lookahead(0), lookahead(3 * time.Hour)})},
		{"R7", "| cap | 100 |", equal(100*GPUHour, hours(100))},
		{"R7", "| spent: 16 × 1.25 | 20 |", equal(20*GPUHour, spent.all())},
		{"R7", "| promised: 16 × 1 | 16 |", equal(16*GPUHour, at.promised(noon, holderOwner))},
		{"R7", "| left for others | 64 |",
			equal([]bool{true, false}, []bool{pays(hundred, 64, 0, noon), pays(hundred, 72, 0, noon)})},
		{"R7", "A Run of 32 GPUs without a `maxDuration` needs 32 and starts.", equal(true, pays(hundred, 32, 0, noon))},
		{"R7", "One of 32 GPUs for 2 hours needs 64 and starts.", equal(true, pays(hundred, 32, 2*time.Hour, noon))},
		{"R7", "One for 3 hours needs 96 and waits.", equal(false, pays(hundred, 32, 3*time.Hour, noon))},
		{"R7", "An hour later the first Run has spent 36 and is promised 16 still.",
			equal([]Spend{36 * GPUHour, 16 * GPUHour}, []Spend{later.all(), at.promised(noon.Add(time.Hour), holderOwner)})},
	}
}

func whatChanges() []statement {
	return []statement{
		{"R8", "A change of a Budget never stops a running Run.", func(t *testing.T) {
			a := capOf(1)
			a.DeleteBudget("b")
			a.Refresh(noon)
			same(t, "overdraft, and usage", []int{16, 16}, []int{a.OverdraftOf("ns/x"), a.Used(Key{"b", "e"})})
		}},
		{"R8", "beginning with what was admitted last, so that the oldest Runs stay within the Budget.", func(t *testing.T) {
			a := accountsOf(flat("b", "o", 8))
			old, young := held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 8),
				held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 8)
			old.Admitted, old.Start = noon.Add(-3*time.Hour), noon // replaced just now
			a.Open("ns/old", old)
			a.Open("ns/young", young)
			same(t, "overdraft", []string{"ns/young"}, a.Refresh(noon))
		}},
		{"R3, R8", "| `FlavorOrSelectorChanged` | The envelope is for another flavor now, or for nodes with other labels, " +
			"or a node's labels were changed. |", func(t *testing.T) {
			a := accountsOf(of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 8, Flavor: "A100"}))
			c := held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 8)
			c.Flavor = "H100"
			a.Open("ns/x", c)
			a.Refresh(noon)
			same(t, "overdraft", []Overdraft{{Key{"b", "e"}, 8, CauseReach}}, a.Overdrafts("b"))
		}},
		{"R8", "New work gets only what the caps leave beside it: nothing where a cap is exceeded, and whatever is left " +
			"where the cause is another.", func(t *testing.T) {
			a := accountsOf(flat("b", "p:o", 24), flat("p", "p", 8), flat("s", "p:s", 8))
			a.Budget("p").Spec.Envelopes[0].Sharing = rqv1.SharingNone
			a.Budget("s").Spec.Envelopes[0].Sharing = rqv1.SharingNone
			a.Budget("b").Spec.Envelopes[0].Sharing = rqv1.SharingNone
			a.Open("ns/x", held(Key{"b", "e"}, "p:s", rqv1.RelationSibling, rqv1.RoleActive, 16))
			same(t, "changed", []string{"ns/x"}, a.Refresh(noon))
			same(t, "payable beside what is withdrawn", 8, payable(a, asks("p:o")))
			a.Budget("b").Spec.Envelopes[0].Concurrency = 8
			same(t, "payable beside what exceeds the cap", 0, payable(a, asks("p:o")))
		}},
		{"R7", "is asked to be paid for until the Run's `maxDuration` is over, and no longer.", func(t *testing.T) {
			a := accountsOf(of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 64, MaxGPUHours: ptr(int64(90))}))
			c := held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 8)
			c.Start, c.Until = noon.Add(-9*time.Hour), noon.Add(time.Hour) // 72 spent, 8 promised
			a.Open("ns/x", c)
			same(t, "8 more for the last hour, and for the whole again", []bool{true, false},
				[]bool{pays(a, 8, time.Hour, noon), pays(a, 8, 10*time.Hour, noon)})
		}},
		{"R8", "who paid for the pod pays for the next one, whatever is allowed by now.", func(t *testing.T) {
			a := accountsOf(flat("b", "o", 8))
			a.Open("ns/x", held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 8))
			ask := asks("o")
			ask.Kept = map[Key]Kept{{"b", "e"}: {1, rqv1.RelationOwn}}
			same(t, "payable", 8, payable(a, ask))
		}},
		{"R9", "it does not count in a window that begins within it.", func(t *testing.T) {
			a := accountsOf(flat("b", "o", 8))
			a.Past("ns/x", held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 8), noon)
			a.Settle("b", noon)
			a.SetBudget(of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 8, Start: after(-30 * time.Minute)}))
			same(t, "spent", Spend(0), a.spentOn(Key{"b", "e"}, noon))
		}},
		{"R9", "it pays for what runs, and what was spent counts, even if Lease objects have been deleted meanwhile;",
			func(t *testing.T) {
				a := capOf(100)
				b := a.Budget("b")
				a.DeleteBudget("b")
				a.Close("ns/x", noon)
				a.Forget("ns/x")
				a.SetBudget(b)
				same(t, "spent", 20*GPUHour, a.spentOn(Key{"b", "e"}, noon))
			}},
		{"R9", "The past is never charged again at another price.", func(t *testing.T) {
			a := NewAccounts(Rates{Spare: 1000})
			a.Past("ns/x", held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleSpare, 8), noon) // by its own rate of 0.5
			same(t, "spent", 4*GPUHour, a.spentOn(Key{"b", "e"}, noon))
		}},
	}
}

// toldElsewhere are what a test of its own holds true, by name, or what the commands of the page show when its own test
// plays them.
var toldElsewhere = []string{
	// TestAPI
	"An owner may have several Budgets, and a Budget up to 64 envelopes",
	// TestDocs
	"AL wants 80 GPUs, in groups of 16.", "A group has two payers only where", "AL is cut from 24 to 16",
	"and 8 more of AL with relation `overdraft`",
	// of the statement beside it
	"If a team's own GPUs must always be available to it", "Say that an envelope has `maxGPUHours: 100`.",
	"has run for 75 minutes:", "has lost nothing:",
	// TestExchangesAreInOrder and TestNoExchange
	"The exception is [growth](rules.md#r6-payers-follow-groups) above a group that others pay for, family or sponsor:",
	// TestCirclesOfParents
	"the parents that close it are ignored until one of them is removed.", "Nobody else is affected.",
	// TestConfigurationTable
	"Closed Leases are kept for `ledgerRetention` (30 days by default).",
	// TestDecide of pkg/lifecycle
	"So GPU time is charged until a pod that terminates is gone",
	// TestConservation, BenchmarkCover
	"counts nothing twice and loses nothing", "so that closed Leases never slow them down", "this is invariant [I8]",
}

// sentences returns what docs/paying.md states in words and tables.
func sentences(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("../../docs/paying.md")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(string(data), "\n\n")
	var out []string
	for _, paragraph := range regexp.MustCompile(`\n\s*\n`).Split(text, -1) {
		switch paragraph = strings.TrimSpace(paragraph); {
		case strings.HasPrefix(paragraph, "#"):
		case strings.HasPrefix(paragraph, "|"):
			out = append(out, strings.Split(paragraph, "\n")...)
		default:
			joined := strings.Join(strings.Fields(paragraph), " ")
			out = append(out, regexp.MustCompile(`[^.:;]+(?:[.:;](?:\S[^.:;]*)?)*`).FindAllString(joined, -1)...)
		}
	}
	return out
}

// TestPayingIsAsTold holds docs/paying.md against what happens, statement by statement: neither changes alone.
func TestPayingIsAsTold(t *testing.T) {
	told := strings.Join(sentences(t), " ")
	told = strings.Join(strings.Fields(told), " ")
	rows := statements(t)
	for _, s := range rows {
		t.Run(s.rule+" "+s.text, func(t *testing.T) {
			if !strings.Contains(told, s.text) {
				t.Errorf("docs/paying.md does not say so (any more)")
			}
			s.holds(t)
		})
	}
	firm := regexp.MustCompile(`(?i)\b(never|always|until|nothing|nobody)\b|[0-9]`)
	list := regexp.MustCompile(`^\s*([0-9]\. )?`)
	for _, sentence := range sentences(t) {
		sentence = strings.TrimSpace(list.ReplaceAllString(sentence, ""))
		known := func(text string) bool { return strings.Contains(text, sentence) || strings.Contains(sentence, text) }
		if firm.MatchString(sentence) && len(sentence) > 2 &&
			!slices.ContainsFunc(rows, func(s statement) bool { return known(s.text) }) &&
			!slices.ContainsFunc(toldElsewhere, known) {
			t.Errorf("no row holds this true: %s", sentence)
		}
	}
}
