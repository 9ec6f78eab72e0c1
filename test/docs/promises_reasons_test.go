package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	refusals   = "pkg/plan/refusal.go"
	conditions = "pkg/apis/rq/v1/run_conditions.go"
	refused    = "test/story/told_refused.go#refusedStories"
	suspended  = "test/story/told_waits.go#suspendedBeforeItStarts"
)

// reasons are what Runs are refused for, why GPU leases open and close, and the conditions of Runs and Budgets.
var reasons = []promise{
	{"Indivisible", "researchers.md", refusals, "", "pkg/plan/fill_test.go#TestShards", ""},
	{"UnknownGPUType", "researchers.md", refusals, "", refused, ""},
	{"WrongResource", "researchers.md", refusals, "", "test/integration/resources_test.go#TestGPUsAndTPUs", ""},
	{"NeverFits", "researchers.md", refusals, "", refused, ""},
	{"InsufficientGPUs", "researchers.md", refusals, "", "test/story/told_money_race.go#onePodOfEach", ""},
	{"NoBudget", "researchers.md", refusals, "", "test/story/told_money.go#budgetLostAndFound", ""},
	{"NoRoomWhereFunded", "researchers.md", refusals, "", "test/story/told_money.go#moneyForTwoPlaces", ""},
	{"InsufficientGPUHours", "researchers.md", refusals, "", "test/story/told_money.go#Hours", ""},
	{"NodesRejected", "researchers.md", refusals, "",
		"test/integration/hotswap_test.go#TestExclusiveDomainsAreOthers", ""},
	{"NotYet", "researchers.md", refusals, "",
		"pkg/book/turned_test.go#TestARankWaitsForTheLeaseOfItsPredecessor", ""},
	{"NotCreated", "researchers.md", refusals, "", "test/integration/quota_test.go#quotaFirst", ""},
	{"HeldInVain", "troubleshooting.md", refusals, "",
		"pkg/book/vain_test.go#restsAfter", ""},
	{"Completed", "concepts.md", apiLeases, `= "Completed"`, "test/story/endings.go#Well", ""},
	{"Failed", "concepts.md", apiLeases, `= "Failed"`, "test/story/told_life.go#runFails", ""},
	{"Deleted", "concepts.md", apiLeases, `= "Deleted"`, "test/story/told_loss.go#podDeletedByHand", ""},
	{"Unwound", "concepts.md", apiLeases, `= "Unwound"`, "pkg/book/loss_test.go#TestWhatBecomesOfLostRanks", ""},
	{"Reclaimed", "concepts.md", apiLeases, `= "Reclaimed"`, "test/story/told_opportunistic.go#shardsGiveWay", ""},
	{"ReclaimedQuota", "concepts.md", apiLeases, `= "ReclaimedQuota"`,
		"pkg/book/quota_test.go#TestShardsGiveWayInAQuota",
		"ClosedReclaimedQuota"},
	{"Evicted", "concepts.md", apiLeases, `= "Evicted"`, "test/story/told_evicted.go#rankEndedByItsNode", ""},
	{"Maintenance", "concepts.md", apiLeases, `= "Maintenance"`,
		"test/story/told_signs.go#ranksLeaveBeforeMaintenance", ""},
	{"Suspended", "concepts.md", apiLeases, `= "Suspended"`, "test/story/told_waits.go#suspendedWhileItRuns", ""},
	{"Start", "concepts.md", apiLeases, `= "Start"`, "test/story/told_life.go#runStarts", "ReasonStart"},
	{"Started", "operators.md", conditions, "", "test/story/sees.go#Refused", "ConditionStarted"},
	{"Finished", "operators.md", conditions, "", "test/story/told_life.go#runStarts", "ConditionFinished"},
	{"Overdraft", "troubleshooting.md", conditions, "", "test/story/told_edits.go#InOverdraft", "ConditionOverdraft"},
	{"GraceCapped", "researchers.md", conditions, "", "test/integration/ending_test.go#TestGracePeriodsAreCapped",
		"ConditionGraceCapped"},
	{"RoomKept", "failures.md", conditions, "", "test/story/told_loss.go#requeuedKeepsItsRoom", "ConditionRoomKept"},
	{"Reclaimed", "failures.md", conditions, "", fillsSpare, "ConditionReclaimed"},
	{"SaveIgnored", "failures.md", conditions, "", "pkg/lifecycle/saved_test.go#TestWhatCannotBeTrueIsTold",
		"ConditionSaveIgnored"},
	{"Suspended", "researchers.md", conditions, "", suspended, "ConditionSuspended"},
	{"NodesHeldBack", "troubleshooting.md", conditions, "",
		"test/story/told_massloss.go#heldBack", "ConditionNodesHeldBack"},
	{"MaintenanceAhead", "failures.md", conditions, "",
		"test/story/told_signs.go#ahead", "ConditionMaintenanceAhead"},
	{"DrainWaits", "troubleshooting.md", conditions, "", "test/story/told_drain.go#waits", "ConditionDrainWaits"},
	{"PriorityClassMissing", "concepts.md", conditions, "", "test/story/told_priority.go#classesComeAndGo",
		"ConditionPriorityClassMissing"},
	{"Circular", "troubleshooting.md", "pkg/apis/rq/v1/budget_types.go", `= "Circular"`,
		"test/story/told_money.go#circleOfParents",
		"ConditionCircular"},
}

// TestEveryReasonIsPromised: what the documentation names of the reasons and conditions that there are is held by a
// test.
func TestEveryReasonIsPromised(t *testing.T) {
	known := map[string]bool{}
	for _, p := range slices.Concat(promises, reasons) {
		known[p.words] = true
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	all := ""
	for _, page := range pages {
		if name := filepath.Base(page); name != "api.md" && name != "internals.md" { // which are no promise
			all += read(t, "docs/"+name)
		}
	}
	found := 0
	for file, constant := range map[string]string{
		refusals: `\w+ Reason = "(\w+)"`, apiLeases: `\w+ (?:Closure|Lease)Reason = "(\w+)"`,
		conditions:                       `Condition\w+ = "(\w+)"`,
		"pkg/apis/rq/v1/budget_types.go": `Condition\w+ = "(\w+)"`,
	} {
		for _, of := range regexp.MustCompile(constant).FindAllStringSubmatch(read(t, file), -1) {
			found++
			if word := of[1]; strings.Contains(all, "`"+word+"`") && !known[word] {
				t.Errorf("docs name %s, and no row says which test shows it", word)
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d reasons and conditions have been found", found)
	}
}
