package cli

import (
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
)

// writeAnswer writes an answer for people.
func writeAnswer(out io.Writer, a payerAnswer, wide bool) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Run %s/%s of %s is %s: %s.", a.Namespace, a.Run, a.Owner, a.Phase, a.verdict())
	for i, r := range a.Remedies {
		before := "  "
		switch i {
		case 0:
			before = " What would help: "
		case 1:
			text.WriteString("What else would help:\n")
		}
		fmt.Fprintf(&text, "%s%s.\n", before, a.inWords(r))
	}
	if len(a.Remedies) == 0 {
		text.WriteString("\n")
	}
	if a.Message != "" {
		fmt.Fprintf(&text, "\nThe scheduler says: %s\n", printers.EscapeTerminal(a.Message))
	}
	fmt.Fprintf(&text, "\nWho is asked, in this order, for pods %s:\n", a.sizeInWords())
	if len(a.Offers) == 0 {
		fmt.Fprintf(&text, "  nobody: neither %s nor its family nor a sponsor of the Run has an envelope of flavor %s\n", a.Owner, a.Flavor)
	} else if err := printTable(offerTable(a.Offers), &text, wide, false); err != nil {
		return err
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
		return a.short()
	case a.WantedGPUs > 0:
		return fmt.Sprintf("all %d %s GPUs that it still needs could be paid for; what it waits for is room", a.WantedGPUs, a.Flavor)
	case a.HeldGPUs > 0:
		return fmt.Sprintf("all its %d GPUs are paid for", a.HeldGPUs)
	}
	return "it needs no GPUs any more"
}

func offerTable(offers []offer) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: columns("Step", "Relation", "Owner", "Envelope", "Selector", "+Concurrency", "+Used",
		"Free", "Offers", "Pays", "Takes", "Stops")}
	for i := range offers {
		o := &offers[i]
		step := ""
		if o.Step > 0 {
			step = fmt.Sprint(o.Step)
		}
		table.Rows = append(table.Rows, row(nil, step, string(o.Relation), string(o.Owner), o.Budget+"/"+o.Envelope,
			selectorText(o.Selector), fmt.Sprint(o.Concurrency), fmt.Sprint(o.UsedGPUs), fmt.Sprint(o.FreeGPUs),
			fmt.Sprint(o.OffersGPUs), fmt.Sprint(o.PaysGPUs), fmt.Sprint(o.TakesGPUs), o.Stops))
	}
	return table
}

// inWords is a remedy with what it leaves short.
func (a *payerAnswer) inWords(r remedy) string {
	if r.PayableGPUs < a.WantedGPUs {
		return fmt.Sprintf("%s (still short by %d)", r.What, a.WantedGPUs-r.PayableGPUs)
	}
	return r.What
}

// sizeInWords says how large a pod is, and how that is known.
func (a *payerAnswer) sizeInWords() string {
	size := fmt.Sprintf("of %d GPUs", a.GPUsPerPod)
	if a.GPUsPerPod == 1 {
		size = "of one GPU"
	}
	if a.PodSizeFrom == podSizeAssumed {
		return fmt.Sprintf("%s (assumed: no node with GPUs of type %s could be read)", size, a.Flavor)
	}
	return fmt.Sprintf("%s (by %s)", size, a.PodSizeFrom)
}
