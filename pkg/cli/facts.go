package cli

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// conflictsShown is how many entries of a conflict set the text names unless all are asked for.
const conflictsShown = 10

// fact is one line or several under a label.
type fact struct {
	label string
	lines []string
}

// writeFacts writes facts under each other, with what labels say in a column of its own. Facts without lines are left out.
func writeFacts(text *strings.Builder, indent string, style func(label string) string, facts []fact) {
	width := 0
	for _, f := range facts {
		if len(f.lines) > 0 {
			width = max(width, len(style(f.label)))
		}
	}
	for _, f := range facts {
		label := style(f.label)
		for _, line := range f.lines {
			fmt.Fprintf(text, "%s%-*s %s\n", indent, width, label, strings.TrimRight(printers.EscapeTerminal(line), " "))
			label = ""
		}
	}
}

// only is a fact's only line, or none when the text is empty.
func only(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// facts says what is promised. Ten conflicts and four nodes are shown, or all of them when wide is set.
func (p *promise) facts(now time.Time, wide bool) ([]fact, error) {
	conflicts, err := p.conflictLines(wide)
	if err != nil {
		return nil, err
	}
	deficit, reservation := "", p.Reservation
	if p.DeficitGPUs > 0 {
		deficit = fmt.Sprintf("%d GPUs", p.DeficitGPUs)
		if p.Scope != "" {
			deficit += " in " + p.Scope
		}
	}
	if p.State != "" {
		reservation += fmt.Sprintf(" (%s)", p.State)
	}
	var payers []string
	for _, e := range p.PayingEnvelopes {
		payers = append(payers, fmt.Sprintf("%s/%s (%d GPUs)", e.Budget, e.Envelope, e.GPUs))
	}
	return []fact{
		{"earliest start", only(p.startInWords(now))},
		{"deficit", only(deficit)},
		{"remedies", p.Remedies},
		{"conflicts", conflicts},
		{"odds", only(p.Odds)},
		{"slice", only(p.sliceInWords(wide))},
		{"payers", payers},
		{"reservation", only(reservation)},
	}, nil
}

// startInWords is the earliest start, how far away it is and how sure.
func (p *promise) startInWords(now time.Time) string {
	words := countdown(p.EarliestStart, now)
	if p.State == rqv1.ReservationActivating {
		words = "activating"
	}
	if p.Confidence != "" {
		words += ", " + p.Confidence
	}
	return fmt.Sprintf("%s (%s)", at(p.EarliestStart), words)
}

func (p *promise) sliceInWords(wide bool) string {
	if p.IntendedSlice == nil {
		return ""
	}
	words := selectorText(p.IntendedSlice.Domain)
	if len(p.IntendedSlice.Nodes) == 0 {
		return words
	}
	if words != "" {
		words += ": "
	}
	return words + nodesInWords(p.IntendedSlice.Nodes, wide)
}

// conflictLines is the conflict set as a table.
func (p *promise) conflictLines(wide bool) ([]string, error) {
	if len(p.ConflictSet) == 0 {
		return nil, nil
	}
	shown := p.ConflictSet
	if !wide && len(shown) > conflictsShown {
		shown = shown[:conflictsShown]
	}
	table := &metav1.Table{ColumnDefinitions: columns("Run", "Owner", "Action", "GPUs", "Odds")}
	for i := range shown {
		c := &shown[i]
		table.Rows = append(table.Rows, row(nil, fullName(c.Run), string(c.Owner), string(c.Action), fmt.Sprint(c.GPUs), percent(c.Probability)))
	}
	var text strings.Builder
	if err := printTable(table, &text, wide, false); err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	if more := len(p.ConflictSet) - len(shown); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more; -o wide shows all", more))
	}
	return lines, nil
}

// fullName is namespace/name.
func fullName(n rqv1.NamespacedName) string { return n.Namespace + "/" + n.Name }
