package budgets

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// budgetOf makes a Budget that the scheduler looked at at noon, of an owner with envelopes.
func budgetOf(name string, owner rqv1.Owner, envelopes ...envelopeOf) rqv1.Budget {
	b := rqv1.Budget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec:       rqv1.BudgetSpec{Owner: owner},
		Status:     rqv1.BudgetStatus{ObservedGeneration: 1, ObservedAt: clitest.Ptr(clitest.After(0))},
	}
	for _, e := range envelopes {
		e.Flavor = "H100-80GB"
		e.status.Name = e.Name
		b.Spec.Envelopes = append(b.Spec.Envelopes, e.Envelope)
		b.Status.Envelopes = append(b.Status.Envelopes, e.status)
	}
	return b
}

// envelopeOf is an envelope and its usage.
type envelopeOf struct {
	rqv1.Envelope
	status rqv1.EnvelopeStatus
}

func sized(name string, concurrency int32, status rqv1.EnvelopeStatus) envelopeOf {
	return envelopeOf{rqv1.Envelope{Name: name, Concurrency: concurrency}, status}
}

// aFamily is org:ai and two teams below it, one of which lends and has overdrawn; a group under both; an outsider who
// has not been looked at; and two owners in a circle.
func aFamily() []rqv1.Budget {
	hours := sized("west-h100", 64, rqv1.EnvelopeStatus{OwnedGPUs: 24, FamilyGPUs: 8, SpareGPUs: 4, HeadroomGPUs: 28,
		LendableGPUs: 8,
		GPUHours:     &rqv1.GPUHours{Spent: "100.50000", Promised: "36.00000", Left: "899.50000", Hourly: "34.00000"}})
	hours.MaxGPUHours = clitest.Ptr(int64(1000))
	closing := sized("east-h100", 32, rqv1.EnvelopeStatus{OpportunisticGPUs: 8,
		GPUHours: &rqv1.GPUHours{Spent: "0.00000", Opportunistic: "1.00000"}})
	closing.Start, closing.End = clitest.Ptr(clitest.After(24*time.Hour)), clitest.Ptr(clitest.After(48*time.Hour))
	rai := budgetOf("rai", "org:ai:rai", hours, closing)
	rai.Spec.AggregateCaps = []rqv1.AggregateCap{{Name: "both", Flavor: "H100-80GB",
		Envelopes:      []string{"west-h100", "east-h100"},
		MaxConcurrency: clitest.Ptr(int32(80)), MaxGPUHours: clitest.Ptr(int64(2000))}}
	rai.Status.AggregateCaps = []rqv1.AggregateCapStatus{{Name: "both", UsedGPUs: 36, HeadroomGPUs: clitest.Ptr(int32(44)),
		GPUHours: &rqv1.GPUHours{Spent: "100.50000", Left: "1899.50000", Hourly: "34.00000"}}}
	mm := budgetOf("mm", "org:ai:mm", sized("pool", 24, rqv1.EnvelopeStatus{OwnedGPUs: 8, LentGPUs: 16, OverdraftGPUs: 10,
		GPUHours: &rqv1.GPUHours{Spent: "7.00000", Hourly: "34.00000", Lost: []rqv1.LostGPUHours{
			{Cause: rqv1.CauseNode, GPUHours: "1.50000"}, {Cause: rqv1.CauseProgram, GPUHours: "0.25000"}}}}))
	mm.Status.Conditions = []metav1.Condition{{Type: rqv1.ConditionOverdrawn, Status: metav1.ConditionTrue,
		Reason:  "ConcurrencyExceeded",
		Message: "envelope pool holds 10 GPUs beyond its concurrency of 24"}}
	shared := budgetOf("shared", "org:ai:rai:sys", sized("all", 8, rqv1.EnvelopeStatus{HeadroomGPUs: 8}))
	shared.Spec.Parents = []rqv1.Owner{"org:ai:mm", "org:ai:rai"}
	fresh := budgetOf("fresh", "org:web", sized("all", 16, rqv1.EnvelopeStatus{}))
	fresh.Status = rqv1.BudgetStatus{}
	ai := budgetOf("ai", "org:ai", sized("reserve", 120, rqv1.EnvelopeStatus{OwnedGPUs: 2, LentGPUs: 1, SpareGPUs: 1,
		HeadroomGPUs: 116}))
	budgets := []rqv1.Budget{ai, fresh, mm, rai, shared}
	for owner, parent := range map[string]rqv1.Owner{"x": "org:y", "y": "org:x"} {
		b := budgetOf("circle-"+owner, rqv1.Owner("org:"+owner), sized("all", 8, rqv1.EnvelopeStatus{OwnedGPUs: 8}))
		b.Spec.Parents = []rqv1.Owner{parent}
		b.Status.Conditions = []metav1.Condition{{Type: rqv1.ConditionCircular, Status: metav1.ConditionTrue,
			Reason:  "ParentsInCircle",
			Message: "org:x and org:y are above each other"}}
		budgets = append(budgets, b)
	}
	// as the server lists them
	slices.SortFunc(budgets, func(a, b rqv1.Budget) int { return strings.Compare(a.Name, b.Name) })
	return budgets
}

func TestBudgetsUsage(t *testing.T) {
	budgets := aFamily()
	u, err := UsageOf(budgets, clitest.Noon.Add(30*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(*strings.Builder) error{
		"usage":      func(text *strings.Builder) error { return writeUsage(text, u, session.Form{}) },
		"usage-wide": func(text *strings.Builder) error { return writeUsage(text, u, session.Form{Wide: true}) },
		"usage-json": func(text *strings.Builder) error { return clitest.InFormat("json", text, u) },
		"usage-yaml": func(text *strings.Builder) error { return clitest.InFormat("yaml", text, u) },
		"usage-tree": func(text *strings.Builder) error {
			return writeTree(text, newTree(budgets, budgets, u), view.Blocks, 0)
		},
		"usage-tree-ascii": func(text *strings.Builder) error {
			some := budgets[len(budgets)-2:]
			u, err := UsageOf(some, clitest.Noon)
			if err != nil {
				return err
			}
			return writeTree(text, newTree(budgets, some, u), view.Ascii, 0)
		},
	} {
		var text strings.Builder
		if err := write(&text); err != nil {
			t.Fatal(err)
		}
		clitest.Golden(t, name, text.String())
	}
}

func TestOutdated(t *testing.T) {
	edited := budgetOf("edited", "org:edited", sized("all", 8, rqv1.EnvelopeStatus{}))
	edited.Generation = 2
	budgets := append(aFamily(), edited)
	for minutes, want := range map[int][]string{0: {"fresh", "edited"}, 11: {"fresh", "mm", "rai", "edited"}} {
		if diff := cmp.Diff(want, outdated(budgets, clitest.After(time.Duration(minutes)*time.Minute).Time)); diff != "" {
			t.Errorf("Budgets with an outdated status after %d minutes (-want +got):\n%s", minutes, diff)
		}
	}
}

func TestHoursCarriedOn(t *testing.T) {
	at := func(hours float64) *metav1.Time {
		return clitest.Ptr(clitest.After(time.Duration(hours * float64(time.Hour))))
	}
	decimal := func(text string) *json.Number { return clitest.Ptr(json.Number(text)) }
	for name, c := range map[string]struct {
		spent, hourly string
		most          int64 // 0 for none
		span          span
		now           float64 // hours after noon
		want          hoursUsage
	}{
		"as observed": {spent: "1.50000", hourly: "8.00000", span: span{from: at(0)},
			want: hoursUsage{SpentGPUHours: "1.50000"}},
		"an hour later": {spent: "1.50000", hourly: "8.00000", most: 20, span: span{from: at(0)}, now: 1,
			want: hoursUsage{SpentGPUHours: "9.50000", LeftGPUHours: decimal("10.50000"), RunsOut: at(1 + 10.5/8)}},
		"the clock is behind": {spent: "1.50000", hourly: "8.00000", span: span{from: at(1)},
			want: hoursUsage{SpentGPUHours: "1.50000"}},
		"never observed": {most: 5, now: 1,
			want: hoursUsage{SpentGPUHours: "0.00000", LeftGPUHours: decimal("5.00000")}},
		"not before the window opens": {hourly: "8.00000", span: span{from: at(0), start: at(1)}, now: 3,
			want: hoursUsage{SpentGPUHours: "16.00000"}},
		"nothing is left": {spent: "1.50000", hourly: "8.00000", most: 2, span: span{from: at(0)}, now: 1,
			want: hoursUsage{SpentGPUHours: "9.50000", LeftGPUHours: decimal("0.00000")}},
		"nothing runs": {spent: "1.50000", most: 2, span: span{from: at(0)}, now: 1,
			want: hoursUsage{SpentGPUHours: "1.50000", LeftGPUHours: decimal("0.50000")}},
		"the window ends first": {hourly: "1.00000", most: 10, span: span{from: at(0), end: at(10)},
			want: hoursUsage{SpentGPUHours: "0.00000", LeftGPUHours: decimal("10.00000")}},
		"the window ends just after": {hourly: "1.00000", most: 10, span: span{from: at(0), end: at(10.5)},
			want: hoursUsage{SpentGPUHours: "0.00000", LeftGPUHours: decimal("10.00000"), RunsOut: at(10)}},
		"not in a lifetime": {hourly: "0.00100", most: 1e12, span: span{from: at(0)},
			want: hoursUsage{SpentGPUHours: "0.00000", LeftGPUHours: decimal("1000000000000.00000")}},
		"more than can be counted": {spent: "2000000000000.00000", hourly: "10000000.00000", span: span{from: at(-2e6)},
			want: hoursUsage{SpentGPUHours: "2562047786111.11111"}},
	} {
		var most *int64
		if c.most > 0 {
			most = &c.most
		}
		got, err := hoursUsageOf(&rqv1.GPUHours{Spent: c.spent, Hourly: c.hourly}, most, c.span, at(c.now).Time)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c.want.MaxGPUHours, c.want.PromisedGPUHours, c.want.HourlyGPUHours = most, "0.00000", json.Number(c.hourly)
		if c.hourly == "" {
			c.want.HourlyGPUHours = "0.00000"
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHoursThatAreNone(t *testing.T) {
	if _, err := hoursUsageOf(&rqv1.GPUHours{Spent: "many"}, nil, span{}, clitest.Noon); err == nil {
		t.Error("a status that holds no number is taken for one")
	}
}

func TestDivide(t *testing.T) {
	for _, c := range []struct {
		parts []int32
		want  []int
	}{
		{[]int32{0, 0, 0}, []int{0, 0, 0}},
		{[]int32{7, 0, 0}, []int{20, 0, 0}},
		{[]int32{50, 0, 50}, []int{10, 0, 10}},
		{[]int32{1, 9999999, 1}, []int{1, 18, 1}},
		{[]int32{1, 1, 1}, []int{7, 6, 7}},
		{[]int32{10000000, 10000000, 10000000}, []int{7, 6, 7}},
	} {
		if diff := cmp.Diff(c.want, picture.Divide(c.parts, 20)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.parts, diff)
		}
	}
}
