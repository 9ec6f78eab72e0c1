package budgets

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// payerAnswer says who pays for a Run and who was asked to. It is what "kubectl runs budgets explain" prints, as text
// or as data.
type payerAnswer struct {
	Run       string        `json:"run"`
	Namespace string        `json:"namespace"`
	Owner     rqv1.Owner    `json:"owner"`
	Phase     rqv1.RunPhase `json:"phase"`
	// Looked is false until the scheduler has looked at the Run as it is now.
	Looked bool   `json:"looked"`
	Flavor string `json:"flavor"`
	// HeldGPUs are paid for now. Of a Run that waits, WantedGPUs are needed, PayableGPUs of these would be paid for,
	// and ShortGPUs not.
	HeldGPUs    int32                `json:"heldGPUs"`
	WantedGPUs  int32                `json:"wantedGPUs"`
	PayableGPUs int32                `json:"payableGPUs"`
	ShortGPUs   int32                `json:"shortGPUs"`
	Reason      string               `json:"reason,omitempty"`
	Message     string               `json:"message,omitempty"`
	Changes     []rqv1.RefusalChange `json:"changes,omitempty"`
	Payers      []payerView          `json:"payers"`
	// Unread says what could not be read, and so is missing above.
	Unread []string `json:"unread,omitempty"`
}

// payerView is the part of one envelope, or of a sponsor that does not lend, which has none.
type payerView struct {
	Step        int32              `json:"step,omitempty"`
	Relation    rqv1.Relation      `json:"relation"`
	Owner       rqv1.Owner         `json:"owner"`
	Budget      string             `json:"budget,omitempty"`
	Envelope    string             `json:"envelope,omitempty"`
	Selector    map[string]string  `json:"selector,omitempty"`
	Concurrency int32              `json:"concurrency"`
	UsedGPUs    int32              `json:"usedGPUs"`
	FreeGPUs    int32              `json:"freeGPUs"`
	PaysGPUs    int32              `json:"paysGPUs"`
	TakesGPUs   int32              `json:"takesGPUs"`
	Limit       *rqv1.RefusalLimit `json:"limit,omitempty"`
	Stops       string             `json:"stops,omitempty"`
}

// payersOf answers from a Run, its open GPU leases and all Budgets.
func payersOf(run *rqv1.Run, leases []rqv1.Lease, budgets []rqv1.Budget) payerAnswer {
	a := payerAnswer{Run: run.Name, Namespace: run.Namespace, Owner: run.Spec.Owner, Phase: view.PhaseOf(run),
		Looked: view.LookedAt(run),
		Flavor: run.Spec.Resources.GPUType, Payers: []payerView{}}
	if r := run.Status.Refusal; r != nil && a.Phase == rqv1.RunPending {
		a.Reason, a.Message, a.Changes, a.WantedGPUs, a.PayableGPUs = r.Reason, run.Status.Message, r.Changes, r.WantedGPUs,
			r.WantedGPUs
		if lacksMoney(r) {
			a.ShortGPUs, a.PayableGPUs = r.ShortGPUs, r.WantedGPUs-r.ShortGPUs
		}
		for _, p := range r.Payers {
			a.Payers = append(a.Payers, payerView{Step: p.Step, Relation: p.Relation, Owner: p.Owner, Budget: p.Budget,
				Envelope:  p.Envelope,
				TakesGPUs: p.GPUs, Limit: p.Limit, Stops: p.Stops})
		}
	}
	asked := len(a.Payers)
	for i := range leases {
		a.add(&leases[i])
	}
	slices.SortStableFunc(a.Payers[asked:], func(x, y payerView) int {
		return cmp.Or(cmp.Compare(x.Relation.Step(), y.Relation.Step()),
			cmp.Compare(len(y.Owner), len(x.Owner)), // the nearest ancestor first
			strings.Compare(string(x.Owner), string(y.Owner)), strings.Compare(x.Budget, y.Budget),
			strings.Compare(x.Envelope, y.Envelope))
	})
	for i := range a.Payers {
		a.Payers[i].measure(budgets)
	}
	return a
}

func lacksMoney(r *rqv1.RunRefusal) bool {
	return (&plan.Refusal{Reason: plan.Reason(r.Reason)}).LacksMoney()
}

// add counts a GPU lease with its payer.
func (a *payerAnswer) add(lease *rqv1.Lease) {
	budget, envelope := lease.Spec.Payer.Budget, lease.Spec.PaidByEnvelope
	i := slices.IndexFunc(a.Payers, func(p payerView) bool { return p.Budget == budget && p.Envelope == envelope })
	if i < 0 {
		i = len(a.Payers)
		a.Payers = append(a.Payers, payerView{Relation: lease.Relation(), Owner: lease.Spec.Payer.Owner, Budget: budget,
			Envelope: envelope})
	}
	a.Payers[i].PaysGPUs += lease.GPUs()
	a.HeldGPUs += lease.GPUs()
}

// measure adds what an envelope has, as its Budget tells.
func (p *payerView) measure(budgets []rqv1.Budget) {
	for i := range budgets {
		b := &budgets[i]
		if b.Name != p.Budget {
			continue
		}
		for j := range b.Spec.Envelopes {
			if e := &b.Spec.Envelopes[j]; e.Name == p.Envelope {
				p.Selector, p.Concurrency = e.Selector, e.Concurrency
			}
		}
		for _, s := range b.Status.Envelopes {
			if s.Name == p.Envelope {
				p.UsedGPUs = s.OwnedGPUs + s.FamilyGPUs + s.LentGPUs + s.SpareGPUs + s.OverdraftGPUs
			}
		}
		p.FreeGPUs = max(0, p.Concurrency-p.UsedGPUs)
		return
	}
}

// writePayers writes an answer for people.
func writePayers(out io.Writer, a payerAnswer, form session.Form) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Run %s/%s of %s is %s: %s", a.Namespace, a.Run, a.Owner, a.Phase, a.verdict())
	text.WriteString(changesInWords(a.Changes, a.WantedGPUs))
	if a.Message != "" {
		fmt.Fprintf(&text, "\nThe scheduler says: %s\n", printers.EscapeTerminal(a.Message))
	}
	if len(a.Payers) > 0 {
		title, table := "Who pays:", payingTable(a.Payers)
		if a.Payers[0].Step > 0 {
			title, table = "Who is asked, in this order:", askedTable(a.Payers)
		}
		fmt.Fprintf(&text, "\n%s\n", title)
		if err := form.Print(table, &text, false); err != nil {
			return err
		}
	}
	for i, what := range a.Unread {
		if i == 0 {
			text.WriteString("\nCould not be read:\n")
		}
		fmt.Fprintf(&text, "  %s\n", what)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// verdict says in a sentence how the Run stands with those who pay.
func (a *payerAnswer) verdict() string {
	switch {
	case a.ShortGPUs > 0:
		return fmt.Sprintf("nobody pays for %d of the %d %s GPUs that it needs.", a.ShortGPUs, a.WantedGPUs, a.Flavor)
	case a.HeldGPUs > 0:
		return fmt.Sprintf("all its %d GPUs are paid for.", a.HeldGPUs)
	case a.Phase != rqv1.RunPending:
		return "it no longer needs GPUs."
	case !a.Looked:
		return "who would pay is not known yet. " + view.NotLooked
	case len(a.Payers) > 0:
		return fmt.Sprintf("all %d %s GPUs that it still needs could be paid for; it waits for free GPUs.", a.WantedGPUs,
			a.Flavor)
	}
	return "it does not wait for a Budget."
}

// changesInWords says what would help, and of each thing what it leaves short.
func changesInWords(changes []rqv1.RefusalChange, wanted int32) string {
	var text strings.Builder
	for i, c := range changes {
		before := "  "
		switch i {
		case 0:
			before = " What would help: "
		case 1:
			text.WriteString("What else would help:\n")
		}
		text.WriteString(before + view.ChangeInWords(c, wanted) + ".\n")
	}
	if len(changes) == 0 {
		return "\n"
	}
	return text.String()
}

func payingTable(payers []payerView) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: session.Columns("Relation~1", "Owner~2", "Envelope", "Selector~3",
		"+Concurrency", "+Used", "Free", "Pays")}
	for i := range payers {
		p := &payers[i]
		table.Rows = append(table.Rows, session.Row(nil, string(p.Relation), string(p.Owner), p.Budget+"/"+p.Envelope,
			view.SelectorText(p.Selector),
			fmt.Sprint(p.Concurrency), fmt.Sprint(p.UsedGPUs), fmt.Sprint(p.FreeGPUs), fmt.Sprint(p.PaysGPUs)))
	}
	return table
}

func askedTable(payers []payerView) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: session.Columns("Step", "Relation~1", "Owner~3", "Envelope", "Selector~4",
		"+Concurrency", "+Used", "Free", "Pays~2", "Takes", "Stops…")}
	for i := range payers {
		p := &payers[i]
		step := ""
		if p.Step > 0 {
			step = fmt.Sprint(p.Step)
		}
		envelope, concurrency, used, free := "-", "-", "-", "-"
		if p.Budget != "" {
			envelope, concurrency = p.Budget+"/"+p.Envelope, fmt.Sprint(p.Concurrency)
			used, free = fmt.Sprint(p.UsedGPUs), fmt.Sprint(p.FreeGPUs)
		}
		table.Rows = append(table.Rows, session.Row(nil, step, string(p.Relation), string(p.Owner), envelope,
			view.SelectorText(p.Selector), concurrency, used, free, fmt.Sprint(p.PaysGPUs), fmt.Sprint(p.TakesGPUs), p.Stops))
	}
	return table
}
