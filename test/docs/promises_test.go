package docs

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promise is something that people and scripts match: a label of pods, a reason, or the words of a message.
type promise struct {
	// words are what they match.
	words string
	// page says so to users.
	page string
	// code is where the words come from: a file, and a piece of it, which is the words if it is empty.
	code, piece string
	// test shows it: a file and a function of it, in which seen stands, which is the words if it is empty.
	test, seen string
}

const (
	apiLabels  = "pkg/apis/rq/v1/groupversion.go"
	apiLeases  = "pkg/apis/rq/v1/lease_types.go"
	apiRuns    = "pkg/apis/rq/v1/run_types.go"
	apiTimes   = "pkg/apis/rq/v1/reservation_types.go"
	ranksKnow  = "test/story/told_life.go#ranksKnow"
	wider      = "test/story/told_life.go#growAndShrink"
	fillsSpare = "test/story/told_opportunistic.go#fillAndSwap"
	swapsOnA   = "test/story/told_cuts.go#swapsOnA"
	oneSpare   = "test/story/told_sizes.go#oneSpareIsOnePod"
	sized      = "test/story/told_sizes.go#sized"
	remedies   = "pkg/resolver/remedies.go"
	remedied   = "pkg/resolver/remedies_test.go#TestRemedies"
	lottery    = "test/story/told_cuts.go#lotteryAfterABudgetCut"
	sponsored  = "test/integration/money_examples_test.go#TestSponsorPays"
)

// promises are what the documentation promises to whoever looks for exactly these words.
var promises = []promise{
	{"rq.davidlangworthy.io/run", "researchers.md", apiLabels, `LabelRun = GroupName + "/run"`, ranksKnow, "LabelRun:"},
	{"rq.davidlangworthy.io/role", "researchers.md", apiLabels, `LabelRole = GroupName + "/role"`, oneSpare,
		"[rqv1.LabelRole] == string(rqv1.RoleSpare)"},
	{"rq.davidlangworthy.io/index", "researchers.md", apiLabels, `LabelIndex = GroupName + "/index"`, ranksKnow,
		"LabelIndex: rank"},
	{"rq.davidlangworthy.io/group-index", "researchers.md", apiLabels, `LabelGroupIndex = GroupName + "/group-index"`,
		ranksKnow, "LabelGroupIndex: fmt"},
	{"rq.davidlangworthy.io/cohort", "researchers.md", apiLabels, `LabelCohort = GroupName + "/cohort"`, ranksKnow,
		`LabelCohort: "0"`},
	{"Spare", "researchers.md", apiLeases, `RoleSpare LeaseRole = "Spare"`, fillsSpare, "Spare Start Swap"},
	{"Borrowed", "opportunistic.md", apiLeases, `RoleBorrowed LeaseRole = "Borrowed"`,
		"test/story/told_opportunistic.go#Borrowed", "rqv1.RoleBorrowed"},
	{"closureReason", "examples.md", apiLeases, `json:"closureReason,omitempty"`, fillsSpare, "ClosureReason"},
	{"ReclaimedBySpare", "opportunistic.md", apiLeases, "", fillsSpare, ""},
	{"Swap", "failures.md", apiLeases, `= "Swap"`, swapsOnA, ""},
	{"NodeFailure", "failures.md", apiLeases, `= "NodeFailure"`, swapsOnA, ""},
	{"Shrink", "concepts.md", apiLeases, `= "Shrink"`, wider, `"Shrink": 8`},
	{"Grow", "concepts.md", apiLeases, `ReasonGrow`, "pkg/book/grow_test.go#TestARunGrowsStepByStep", "ReasonGrow"},
	{"Restart", "failures.md", apiLeases, `ReasonRestart LeaseReason = "Restart"`,
		"test/story/told_restarts.go#restartWhereItWas", "ReasonRestart: 1"},
	{"Repaid", "concepts.md", apiLeases, `ClosedRepaid ClosureReason = "Repaid"`,
		"test/story/told_borrowed.go#desiresLess", `"Repaid": 2`},
	{"RandomPreempt", "concepts.md", apiLeases, `= "RandomPreempt"`, lottery, ""},
	{"DropSpare", "concepts.md", apiLeases, `= "DropSpare"`, "test/story/told_room.go#sparesDroppedFirst", ""},
	{"PriorityPreempt", "hotswap.md", apiLeases, `= "PriorityPreempt"`,
		"test/integration/hotswap_test.go#TestHotSwapOfJobSets", "ClosedPriorityPreempt"},
	{"swapped to spare after node failure", "failures.md", "pkg/lifecycle/story.go", "swapped to spare %s", swapsOnA, ""},
	{"bound 96 GPUs", "examples.md", "pkg/lifecycle/story.go", "bound %d GPU", wider, ""},
	{"grew to 128 GPUs", "examples.md", "pkg/lifecycle/story.go", "grew to %d GPU", wider, ""},
	{"Grow to 160", "examples.md", "pkg/lifecycle/status.go", "Grow to %d", wider, ""},
	{"[leases: 2 active, 1 spare]", "researchers.md", "pkg/cli/watch/transition.go", `NoteOf("leases:"`,
		"test/integration/cli_watch_test.go#TestWatchTellsWidthAndLeases", "[leases: 2 active, 2 spare]"},
	{"desiredTotalGPUs", "examples.md", apiRuns, `json:"desiredTotalGPUs,omitempty"`, wider, "Desires(96)"},
	{"shrunk to 96 GPUs", "examples.md", "pkg/lifecycle/story.go", "shrunk to %d GPU", wider, ""},
	{"sponsor", "examples.md", "pkg/apis/rq/v1/shared_types.go", `RelationSponsor Relation = "sponsor"`,
		"test/story/told_borrowed.go#borrowedFirst", `s.Pay("lender", 8, "sponsor")`},
	{"InsufficientBudget", "researchers.md", "pkg/plan/refusal.go", "", "test/story/told_sizes.go#sparesDoNotChoose", ""},
	{"WindowClosed", "researchers.md", "pkg/plan/refusal.go", "", "test/story/told_sizes.go#sizePaidInItsWindow", ""},
	{"GPUs exhausted for requested width", "troubleshooting.md", "pkg/plan/money.go", "", sponsored, ""},
	{"BorrowLimit", "reservations.md", "pkg/plan/refusal.go", "", sponsored, ""},
	{"it does not lend to", "troubleshooting.md", "pkg/budget/cover.go", "",
		"pkg/budget/limit_test.go#TestSponsorsThatDoNotLend", ""},
	{"borrowedGPUs", "examples.md", "pkg/apis/rq/v1/funding_types.go", "", sponsored, "awaitFunding"},
	{"ownedGPUs", "examples.md", "pkg/apis/rq/v1/funding_types.go", `json:"ownedGPUs"`, sponsored, "awaitFunding"},
	{"spares: 1", "researchers.md", apiRuns, `json:"spares,omitempty"`, oneSpare, "Spares(1)"},
	{"sparesPerGroup", "researchers.md", apiRuns, `json:"sparesPerGroup,omitempty"`, sized, "status.SparesPerGroup"},
	{"gpusPerPod", "researchers.md", apiRuns, `json:"gpusPerPod,omitempty"`, sized, "status.GPUsPerPod"},
	{"pendingReservation", "reservations.md", apiRuns, `json:"pendingReservation,omitempty"`, lottery,
		"PendingReservation"},
	{"Released", "reservations.md", apiTimes, `= "Released"`, lottery, "ReservationReleased"},
	{"earliestStart", "reservations.md", apiTimes, `json:"earliestStart"`, lottery, "EarliestStart"},
	{"deficitGPUs", "reservations.md", apiTimes, `json:"deficitGPUs"`, lottery, "DeficitGPUs"},
	{"conflictSet", "reservations.md", apiTimes, `json:"conflictSet,omitempty"`, lottery, "Conflicts(r)"},
	{"cluster short by", "examples.md", "pkg/lifecycle/publish.go", "", oneSpare, ""},
	{"Drop spares in scope", "reservations.md", remedies, "", remedied, ""},
	{"Shrink elastic runs by step size", "reservations.md", remedies, "", remedied, ""},
	{"Run fair lottery if deficit remains", "reservations.md", remedies, "", remedied, ""},
	{"conservative", "reservations.md", apiTimes, `= "conservative"`, lottery, "ConfidenceConservative"},
	{"window-aligned", "examples.md", apiTimes, `= "window-aligned"`, "test/story/told_turns.go#windowOpens",
		"ConfidenceWindowAligned"},
	{"known-release", "reservations.md", apiTimes, `= "known-release"`, "test/story/told_room.go#knownDates",
		"ConfidenceKnownRelease"},
	{"countdownSeconds", "examples.md", apiTimes, "", "pkg/lifecycle/commitment_test.go#TestTheCountdown",
		"Status.CountdownSeconds; got != want"},
	{"AtRisk", "reservations.md", "pkg/apis/rq/v1/run_conditions.go", "", "test/story/told_backfill.go#risk",
		"ConditionAtRisk"},
	{"DeletionByJobtree", "workloads.md", "pkg/controllers/pods.go", "", "test/integration/groups_life_test.go#seen", ""},
}

// TestPromises holds what people match against where it is said, where it comes from and the test that shows it.
func TestPromises(t *testing.T) {
	for _, p := range slices.Concat(promises, reasons) {
		t.Run(p.words, func(t *testing.T) {
			if !strings.Contains(read(t, "docs/"+p.page), p.words) {
				t.Errorf("docs/%s does not say it", p.page)
			}
			if piece := cmp.Or(p.piece, p.words); !strings.Contains(read(t, p.code), piece) {
				t.Errorf("%s has no %q", p.code, piece)
			}
			file, name, _ := strings.Cut(p.test, "#")
			of := regexp.MustCompile(`(?ms)^func (?:\([^)]*\) )?` + name + `\([^\n]*(.*?)^}`).FindStringSubmatch(read(t, file))
			body := strings.Join(of[min(1, len(of)):], "") // its name is no proof
			if seen := cmp.Or(p.seen, p.words); !strings.Contains(body, seen) {
				t.Errorf("%s has no function %s with %q", file, name, seen)
			}
		})
	}
}
