package integration

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestCLIOnAFamily has one team spend from its own Budget, its sibling's, its parent's and a lender's, and reads the
// outcome as a person, a script and an accountant do.
func TestCLIOnAFamily(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 3, 2, 16)
	team, kin, lender := s.owner+":a", s.owner+":b", s.owner+"-lender"
	name := func(of string) string { return s.namespace + "-" + of }
	hours, most := int64(1000), int32(8)
	s.create(s.budgetOf(name("a"), team, rqv1.Envelope{Concurrency: 8, MaxGPUHours: &hours}))
	s.create(s.budgetOf(name("b"), kin, rqv1.Envelope{Concurrency: 8}))
	s.create(s.budgetOf(name("lender"), lender, rqv1.Envelope{Concurrency: 16,
		Lending: &rqv1.Lending{Allow: true, To: []rqv1.ACLEntry{rqv1.ACLEntry(s.owner + ":*")}, MaxConcurrency: &most}}))
	borrows := func(r *rqv1.Run) {
		r.Spec.Funding = &rqv1.RunFunding{AllowBorrow: true, MaxBorrowGPUs: &most, Sponsors: []rqv1.Owner{lender}}
	}
	by := func(r *rqv1.Run) { r.Spec.Owner = team }
	s.submit("own", 8, inPods(8), by)
	s.await("own", rqv1.RunRunning, "bound 8 GPUs")
	s.submit("kin", 16, inPods(8), by)
	s.await("kin", rqv1.RunRunning, "bound 16 GPUs")
	s.submit("loan", 16, inPods(8), by, borrows)
	s.await("loan", rqv1.RunRunning, "bound 16 GPUs")
	s.submit("waits", 24, inPods(8), by, borrows)
	s.await("waits", rqv1.RunPending, "24")
	edit(s, s.budgetOf(name("b"), kin, rqv1.Envelope{}), func(b *rqv1.Budget) { b.Spec.Envelopes[0].Concurrency = 4 })

	s.awaitUsage(map[string]usageRow{
		name("a"):      {Concurrency: 8, OwnedGPUs: 8},
		name("b"):      {Concurrency: 4, FamilyGPUs: 4, OverdraftGPUs: 4},
		name("lender"): {Concurrency: 16, LentGPUs: 8, FreeGPUs: 8},
		s.namespace:    {Concurrency: 16, FamilyGPUs: 16},
	})
	if owners := s.complete("leases --owner org:"); !strings.Contains(owners,
		fmt.Sprintf("%s\n%s\n%s\n%s\n", s.owner, lender, team, kin)) {
		t.Errorf("owners to choose from:\n%s", owners)
	}
	s.checkUsageTexts(team, kin, lender, name)
	s.checkExplained(team, kin, lender, name)
	s.removeRun("own")
	s.awaitUsage(map[string]usageRow{name("a"): {Concurrency: 8, FreeGPUs: 8}})
	s.checkLedgerAsCSV(name("a"))
}

// budgetOf is a Budget of an owner with one envelope, named all.
func (s *site) budgetOf(name string, owner rqv1.Owner, e rqv1.Envelope) *rqv1.Budget {
	e.Name, e.Flavor = "all", s.flavor
	return &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: rqv1.BudgetSpec{Owner: owner, Envelopes: []rqv1.Envelope{e}}}
}

// runs is the output of a kubectl runs command that succeeds.
func (s *site) runs(line string) string {
	s.t.Helper()
	return mustCommand(s.t, s.ControlPlane, "", "runs "+line)
}

// complete is what a shell is offered behind a kubectl runs command.
func (s *site) complete(line string) string {
	s.t.Helper()
	return mustCommand(s.t, s.ControlPlane, "", "__complete runs "+line)
}

// usageRow is what a script reads of an envelope's usage.
type usageRow struct {
	Concurrency, OwnedGPUs, FamilyGPUs, LentGPUs, SpareGPUs, OverdraftGPUs, FreeGPUs int
}

// awaitUsage waits until "budgets usage -o json" shows the rows of some Budgets.
func (s *site) awaitUsage(want map[string]usageRow) {
	s.t.Helper()
	eventually(s.t, "the usage", func() error {
		var list struct {
			Envelopes []struct {
				Budget string
				usageRow
			}
		}
		if err := json.Unmarshal([]byte(s.runs("budgets usage -o json --owner "+string(s.owner)+"*")), &list); err != nil {
			return err
		}
		got := map[string]usageRow{}
		for _, row := range list.Envelopes {
			if _, wanted := want[row.Budget]; wanted {
				got[row.Budget] = row.usageRow
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("rows (-want +got):\n%s", diff)
		}
		return nil
	})
}

// checkUsageTexts looks at the table and at the tree, whose lines are compared without their GPU-hours.
func (s *site) checkUsageTexts(team, kin, lender rqv1.Owner, name func(string) string) {
	s.t.Helper()
	table := s.runs("budgets usage --owner " + string(kin))
	overdrawn := fmt.Sprintf("! Budget %s of %s is overdrawn (ConcurrencyExceeded): all: 4 GPUs", name("b"), kin)
	if fields := strings.Fields(strings.Split(table, "\n")[1]); fields[0] != name("b") || fields[8] != "4" ||
		!strings.Contains(table, overdrawn) {
		s.t.Errorf("the table does not show an overdraft of 4 and %q:\n%s", overdrawn, table)
	}
	var lines []string
	for _, line := range strings.Split(s.runs("budgets usage --tree --owner "+string(s.owner)+"*"), "\n") {
		line, _, _ = strings.Cut(line, ";")
		line, _, _ = strings.Cut(line, " (ConcurrencyExceeded)")
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	bar := func(of, cells, numbers string) string { return of + "/all " + s.flavor + " [" + cells + "] " + numbers }
	want := []string{
		string(s.owner),
		"| " + bar(s.namespace, "++++++++++++++++++++", "16 of 16 used, 16 lent to family, 0 free"),
		"|-- " + string(team),
		"| " + bar(name("a"), "####################", "8 of 8 used, 0 free"),
		"`-- " + string(kin),
		bar(name("b"), "++++++++++!!!!!!!!!!", "8 of 4 used, 4 overdraft, 4 lent to family, 0 free"),
		fmt.Sprintf("! Budget %s of %s is overdrawn", name("b"), kin),
		string(lender),
		bar(name("lender"), "++++++++++..........", "8 of 16 used, 8 lent, 8 free"),
		"", "# own + lent = spare ! overdraft . free x closed by window, GPU-hours or an aggregate cap", "",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		s.t.Errorf("the tree (-want +got):\n%s", diff)
	}
}

// checkExplained asks who pays for a Run that runs, and for one that waits.
func (s *site) checkExplained(team, kin, lender rqv1.Owner, name func(string) string) {
	s.t.Helper()
	type payer struct {
		Relation, Owner, Budget string
		TakesGPUs, PaysGPUs     int
	}
	var loan, waits struct {
		ShortGPUs int
		Payers    []payer
		Changes   []struct{ What string }
	}
	for run, into := range map[string]any{"loan": &loan, "waits": &waits} {
		if err := json.Unmarshal([]byte(s.runs("budgets explain -o json -n "+s.namespace+" "+run)), into); err != nil {
			s.t.Fatal(err)
		}
	}
	paying := []payer{{"ancestor", string(s.owner), s.namespace, 0, 8}, {"sponsor", string(lender), name("lender"), 0, 8}}
	if diff := cmp.Diff(paying, loan.Payers); diff != "" || loan.ShortGPUs != 0 {
		s.t.Errorf("who pays for the loan, short by %d (-want +got):\n%s", loan.ShortGPUs, diff)
	}
	asked := []payer{{"own", string(team), name("a"), 0, 0}, {"sibling", string(kin), name("b"), 0, 0},
		{"ancestor", string(s.owner), s.namespace, 0, 0}, {"sponsor", string(lender), name("lender"), 0, 0}}
	if diff := cmp.Diff(asked, waits.Payers); diff != "" || waits.ShortGPUs != 24 {
		s.t.Errorf("who would pay for what waits, short by %d (-want +got):\n%s", waits.ShortGPUs, diff)
	}
	if want := fmt.Sprintf("raise envelopes[all].concurrency of Budget %s from 8 to 32",
		name("a")); len(waits.Changes) == 0 || waits.Changes[0].What != want {
		s.t.Errorf("what would help: %v, want %q", waits.Changes, want)
	}
	first, _, _ := strings.Cut(s.runs("budgets explain -n "+s.namespace+" waits"), "\n")
	if want := "nobody pays for 24 of the 24 " + s.flavor +
		" GPUs that it needs. What would help: raise"; !strings.Contains(first, want) {
		s.t.Errorf("the first line is %q, want %q in it", first, want)
	}
}

// checkLedgerAsCSV compares the lines for finance with the Leases, and what a Budget has spent with their sum.
func (s *site) checkLedgerAsCSV(settled string) {
	s.t.Helper()
	records, err := csv.NewReader(strings.NewReader(s.runs("leases --since 1h -o csv -n " + s.namespace))).ReadAll()
	if err != nil {
		s.t.Fatal(err)
	}
	at := map[string]int{}
	for i, column := range records[0] {
		at[column] = i
	}
	lines := map[string]string{}
	for _, record := range records[1:] {
		if record[at["end"]] == "" {
			record[at["gpu_seconds"]] = "open" // it grows
		}
		lines[record[at["lease"]]] = strings.Join([]string{record[at["run"]], record[at["payer_owner"]], record[at["budget"]],
			record[at["relation"]], record[at["gpus"]], record[at["gpu_seconds"]]}, " ")
	}
	want, spent := map[string]string{}, int64(0)
	for _, run := range []string{"own", "kin", "loan", "waits"} {
		for _, lease := range s.leasesOf(run) {
			seconds := "open"
			if lease.Status.Closed {
				n := 8 * (lease.Status.Ended.Unix() - lease.Spec.Start.Unix())
				seconds = fmt.Sprintf("%d.000", n)
				if lease.Spec.Payer.Budget == settled {
					spent += n
				}
			}
			want[lease.Name] = fmt.Sprintf("%s %s %s %s 8 %s", run, lease.Spec.Payer.Owner, lease.Spec.Payer.Budget,
				lease.Spec.Payer.Relation, seconds)
		}
	}
	if diff := cmp.Diff(want, lines); diff != "" || len(lines) != 5 {
		s.t.Errorf("%d lines of the ledger (-want +got):\n%s", len(lines), diff)
	}
	var list struct {
		Envelopes []struct{ SpentGPUHours, LeftGPUHours json.Number }
	}
	if err := json.Unmarshal([]byte(s.runs("budgets usage -o json --owner "+string(s.owner)+":a")), &list); err != nil {
		s.t.Fatal(err)
	}
	if hours := fmt.Sprintf("%d.%05d", spent/3600, spent%3600*100000/3600); len(list.Envelopes) != 1 ||
		list.Envelopes[0].SpentGPUHours.String() != hours {
		s.t.Errorf("usage says %v, the ledger %s GPU-hours", list.Envelopes, hours)
	}
}
