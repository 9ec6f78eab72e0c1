package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/budgets"
	"github.com/davidlangworthy/jobtree/pkg/cli/cancel"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/explain"
	"github.com/davidlangworthy/jobtree/pkg/cli/fleet"
	"github.com/davidlangworthy/jobtree/pkg/cli/history"
	"github.com/davidlangworthy/jobtree/pkg/cli/leases"
	"github.com/davidlangworthy/jobtree/pkg/cli/list"
	"github.com/davidlangworthy/jobtree/pkg/cli/maintenance"
	"github.com/davidlangworthy/jobtree/pkg/cli/nodes"
	"github.com/davidlangworthy/jobtree/pkg/cli/plan"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// office has names as people give them: of 20 characters for Runs and nodes, of 12 for the namespace and the Budget.
const office = "nlp-research"

// worker is a node of the office.
func worker(i int) string { return fmt.Sprintf("gpu-h100-worker-%04d", i) }

// workers are eight nodes in two domains: one is lost, and of one maintenance is announced.
func workers() []client.Object {
	var all []client.Object
	for i := range 8 {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: worker(i), Annotations: map[string]string{},
			Labels: map[string]string{"region": "us-west", "cluster": "gpu-a", "fabric.domain": fmt.Sprint("rail-", i/4),
				"gpu.flavor": "H100-80GB"}}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
		n.Status.Capacity = n.Status.Allocatable
		switch i {
		case 6:
			n.Annotations[rqv1.AnnotationMaintenanceStart] = "2030-01-03T14:00:00Z"
			n.Annotations[rqv1.AnnotationMaintenanceEnd] = "2030-01-03T18:00:00Z"
		case 7:
			n.Spec.Unschedulable = true
			n.Annotations[rqv1.AnnotationLost] = nodeloss.Record(nodeloss.Verdict{Lost: true,
				Reason:  nodeloss.Stale,
				Message: "its kubelet has not renewed its lease for 45 seconds, and nothing else was heard"}, clitest.Noon)
		}
		all = append(all, n)
	}
	return all
}

// named is a Run of the office.
func named(name string, gpus int32, status rqv1.RunStatus) *rqv1.Run {
	run := clitest.RunOf(name, gpus, 0, status)
	run.Namespace, run.Spec.Owner, run.Spec.Submitter = office, "org:ai:nlp:core", "ada"
	return &run
}

// ordinary is an office in which one Run trains, one is over, one is at risk and one waits.
func ordinary() []client.Object {
	trains := named("llama-pretrain-70b-a", 32, clitest.Runs(32))
	over := named("speech-encoder-large", 16, clitest.Runs(16))
	over.Status.Phase = rqv1.RunCompleted
	shrinks, waits := named("elastic-finetune-13b", 16, clitest.Runs(16)), named("vision-transformer-1", 32,
		clitest.Waits("InsufficientGPUs", "32 H100-80GB GPUs are needed, and 8 fit now: short by 24"))
	shrinks.Status.AtRisk = []rqv1.RunRisk{{Reservation: office + "/" + waits.Name + "-r0", Probability: "1",
		At:   clitest.After(65 * time.Minute),
		Cuts: []rqv1.RiskCut{{Action: rqv1.CutShrink, GPUs: 8, Width: 8, Probability: "1"}}}}
	promise := clitest.ReservationOf(waits, 24, rqv1.Conflict{Action: rqv1.CutShrink, Owner: shrinks.Spec.Owner, GPUs: 8,
		Run: rqv1.NamespacedName{Namespace: office, Name: shrinks.Name}, Probability: "1"})
	promise.Spec.EarliestStart = clitest.After(65 * time.Minute)
	clitest.PromisedTo(waits, &promise)
	waits.Status.Refusal = &rqv1.RunRefusal{Reason: "InsufficientGPUs", WantedGPUs: 32, ShortGPUs: 24,
		Payers: []rqv1.RefusalPayer{{Step: 1, Relation: rqv1.RelationOwn, Owner: "org:ai:nlp:core", Budget: office,
			Envelope: "west-h100", GPUs: 32, Stops: "8 of 64 GPUs are in use, and 24 are reserved for another Run"}}}
	paying := &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: office, Generation: 1}, Spec: rqv1.BudgetSpec{
		Owner: "org:ai:nlp:core", Envelopes: []rqv1.Envelope{{Name: "west-h100", Flavor: "H100-80GB", Concurrency: 128,
			Selector: map[string]string{"region": "us-west", "cluster": "gpu-a"}, MaxGPUHours: clitest.Ptr[int64](50000)}}}}
	paying.Status = rqv1.BudgetStatus{ObservedAt: clitest.Ptr(clitest.After(time.Hour)), ObservedGeneration: 1,
		Envelopes: []rqv1.EnvelopeStatus{{Name: "west-h100", OwnedGPUs: 32, FamilyGPUs: 16, SpareGPUs: 4, HeadroomGPUs: 76,
			GPUHours: &rqv1.GPUHours{Spent: "12345.50000", Left: "37654.50000", Hourly: "48.00000",
				Lost: []rqv1.LostGPUHours{{Cause: rqv1.CauseNode, GPUHours: "120.50000"}}}}}}
	all := append(workers(), trains, over, shrinks, waits, &promise, paying)
	for i, run := range []*rqv1.Run{trains, trains, trains, trains, shrinks, shrinks, over, over} {
		lease := clitest.As(clitest.LeaseOf(run, fmt.Sprint("lease-", i), 0, worker(i%6)), rqv1.RoleActive, i)
		lease.Labels[rqv1.LabelRun] = run.Name
		lease.Spec.Payer = rqv1.LeasePayer{Budget: office, Owner: "org:ai:nlp:core"}
		if run == over {
			lease = clitest.Closed(lease, 40*time.Minute, rqv1.ClosedCompleted)
		}
		all = append(all, &lease)
	}
	return all
}

// listing is a command that lists something.
type listing struct {
	command clitest.Maker
	line    string
	// The header of its table at 80 and at 120 columns of a terminal, and in a pipe, if it has one.
	at80, at120, piped string
	// text is the column that a terminal cuts, if any.
	text string
	// prose tells lines that are sentences, which a terminal breaks: commands in them can still be copied.
	prose func(line string) bool
	// typed is what is answered.
	typed string
}

// facts are lines under labels, of which only those of tables are to fit.
func facts(line string) bool {
	return !strings.Contains(line, "%") && !strings.Contains(line, "CHANCE")
}

// sentence is a line with which a command begins.
func sentence(line string) bool { return strings.HasPrefix(line, "Run ") }

var listings = []listing{
	{command: list.Command, at80: "NAME WIDTH PHASE AGE MESSAGE", at120: "NAME OWNER WIDTH PHASE AGE MESSAGE",
		piped: "NAME OWNER WIDTH SPARES PHASE AGE MESSAGE", text: "MESSAGE"},
	{command: list.Command, line: "-A", at80: "NAMESPACE NAME WIDTH PHASE MESSAGE",
		at120: "NAMESPACE NAME OWNER WIDTH PHASE AGE MESSAGE",
		piped: "NAMESPACE NAME OWNER WIDTH SPARES PHASE AGE MESSAGE", text: "MESSAGE"},
	{command: leases.Command, line: "llama-pretrain-70b-a", at80: "RUN PAYER GPUS GPU-HOURS BEGAN",
		at120: "RUN PAYER OWNER GPUS GPU-HOURS BEGAN", piped: "RUN PAYER OWNER GPUS GPU-HOURS BEGAN"},
	{command: leases.Command, line: "-A", at80: "NAMESPACE RUN PAYER GPUS CLOSURES",
		at120: "NAMESPACE RUN PAYER GPUS GPU-HOURS BEGAN ENDED CLOSURES",
		piped: "NAMESPACE RUN PAYER OWNER GPUS GPU-HOURS BEGAN ENDED CLOSURES"},
	{command: leases.Command, line: "--pods", at80: "RUN ROLE NODES GPUS PAYER",
		at120: "RUN ROLE NODES GPUS START END REASON CLOSURE PAYER",
		piped: "RUN ROLE GROUP NODES GPUS START END REASON CLOSURE PAYER OWNER"},
	{command: leases.Command, line: "-A --pods", at80: "NAMESPACE RUN NODES GPUS CLOSURE",
		at120: "NAMESPACE RUN NODES GPUS START END CLOSURE PAYER",
		piped: "NAMESPACE RUN ROLE GROUP NODES GPUS START END REASON CLOSURE PAYER OWNER"},
	{command: history.Command, at80: "RUN STATE ELAPSED GPU-HOURS PAYERS",
		at120: "RUN STATE STARTED ELAPSED GPUS GPU-HOURS PAYERS", piped: "RUN STATE STARTED ELAPSED GPUS GPU-HOURS PAYERS"},
	{command: history.Command, line: "-A", at80: "NAMESPACE RUN STATE STARTED ELAPSED GPUS GPU-HOURS",
		at120: "NAMESPACE RUN STATE STARTED ELAPSED GPUS GPU-HOURS PAYERS",
		piped: "NAMESPACE RUN STATE STARTED ELAPSED GPUS GPU-HOURS PAYERS"},
	{command: budgets.Command, line: "usage"},
	{command: budgets.Command, line: "usage --tree"},
	{command: budgets.Command, line: "explain vision-transformer-1", text: "STOPS", prose: sentence,
		at80: "STEP RELATION ENVELOPE FREE TAKES STOPS", at120: "STEP RELATION OWNER ENVELOPE FREE PAYS TAKES STOPS",
		piped: "STEP RELATION OWNER ENVELOPE SELECTOR FREE PAYS TAKES STOPS"},
	{command: budgets.Command, line: "explain llama-pretrain-70b-a", at80: "RELATION OWNER ENVELOPE FREE PAYS",
		at120: "RELATION OWNER ENVELOPE SELECTOR FREE PAYS", piped: "RELATION OWNER ENVELOPE SELECTOR FREE PAYS",
		prose: sentence},
	{command: nodes.Command, at80: "NAME GPUS STATE SINCE WHY", at120: "NAME GPUS STATE SINCE WHY",
		piped: "NAME GPUS STATE SINCE WHY", text: "WHY"},
	{command: maintenance.Command, line: "list", at80: "NODE STATE START END", at120: "NODE STATE START END",
		piped: "NODE STATE START END MESSAGE"},
	{command: fleet.Command},
	{command: fleet.Command, line: "--domains"},
	{command: plan.Command, line: "-A", at80: "NAMESPACE RUN GPUS STARTS now +10m",
		at120: "NAMESPACE RUN GPUS STARTS CONFIDENCE now +10m", piped: "NAMESPACE RUN GPUS STARTS CONFIDENCE now +10m"},
	{command: plan.Command, line: "vision-transformer-1", prose: facts, at80: "MAY BE CUT RUN ACTION GPUS CHANCE",
		at120: "MAY BE CUT RUN OWNER ACTION GPUS CHANCE", piped: "MAY BE CUT RUN OWNER ACTION GPUS CHANCE"},
	{command: explain.Command, line: "vision-transformer-1", prose: facts, at80: "may be cut: RUN ACTION GPUS CHANCE",
		at120: "may be cut: RUN OWNER ACTION GPUS CHANCE", piped: "may be cut: RUN OWNER ACTION GPUS CHANCE"},
	{command: cancel.Command, line: "--all", typed: "n\n", at80: "NAME WIDTH PHASE AGE", at120: "NAME WIDTH PHASE AGE"},
}

// TestTablesFit: a terminal shows as many columns of a table as it has room for, each as a whole but a text at the end,
// and a pipe gets all.
func TestTablesFit(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	for _, l := range listings {
		for columns, header := range map[int]string{80: l.at80, 120: l.at120, 0: l.piped} {
			server := clitest.NewServer(t, ordinary()...)
			server.Set(clitest.Published(t, ""))
			args := append([]string{"-n", office}, strings.Fields(l.line)...)
			shown := clitest.Do(t, server, l.command, args...).Out
			if columns > 0 {
				shown = clitest.OnTerminal(t, server, l.command, columns, l.typed, args...).Out
			}
			l.fits(t, shown, columns, header)
		}
	}
}

func (l *listing) fits(t *testing.T, shown string, columns int, header string) {
	t.Helper()
	what := fmt.Sprintf("%q on %d columns", l.line, columns)
	named := header == ""
	for line := range strings.Lines(shown) {
		line = strings.TrimSuffix(line, "\n")
		named = named || strings.Join(strings.Fields(line), " ") == header
		cut := strings.Contains(line, "…")
		if columns > 0 && utf8.RuneCountInString(line) > columns && (l.prose == nil || !l.prose(line)) ||
			cut && (columns == 0 || l.text == "") {
			t.Errorf("%s: %q", what, line)
		}
	}
	if !named {
		t.Errorf("%s is not headed %s:\n%s", what, header, shown)
	}
	if os.Getenv("SHOW") != "" {
		fmt.Printf("== %s\n%s\n", what, shown)
	}
}
