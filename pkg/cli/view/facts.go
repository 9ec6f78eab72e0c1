// Package view puts what several commands tell of a Run into words: where it is, what it waits for, what befell its
// GPU leases.
package view

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/risk"
)

// conflictsShown is how many entries of a conflict set the text names unless all are asked for.
const conflictsShown = 10

// Fact is one line or several under a label.
type Fact struct {
	Label string
	Lines []string
}

// WriteFacts writes facts under each other, with what labels say in a column of its own. Facts without lines are left
// out.
func WriteFacts(text *strings.Builder, indent string, style func(label string) string, facts []Fact) {
	width := 0
	for _, f := range facts {
		if len(f.Lines) > 0 {
			width = max(width, len(style(f.Label)))
		}
	}
	for _, f := range facts {
		label := style(f.Label)
		for _, line := range f.Lines {
			fmt.Fprintf(text, "%s%-*s %s\n", indent, width, label, strings.TrimRight(printers.EscapeTerminal(line), " "))
			label = ""
		}
	}
}

// Only is a fact's only line, or none when the text is empty.
func Only(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// labelled is how many columns the label of a fact takes, or more.
const labelled = 18

// Facts says what is promised. Ten conflicts and four nodes are shown, or all of them in the wide format.
func (p *Promise) Facts(now time.Time, form session.Form) ([]Fact, error) {
	conflicts, err := p.conflictLines(form.Beside(labelled))
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
	estimate := p.Odds
	if estimate == resolver.ExactOdds {
		estimate = ""
	}
	return []Fact{
		{"starts by", Only(p.startInWords(now))},
		{"deficit", Only(deficit)},
		{"remedies", p.Remedies},
		{"may be cut", conflicts},
		{"odds", Only(estimate)},
		{"where", Only(p.sliceInWords(form.Wide))},
		{"paid by", payers},
		{"reservation", Only(reservation)},
	}, nil
}

// startInWords is when the Run starts at the latest, how far away it is and how sure.
func (p *Promise) startInWords(now time.Time) string {
	words := Countdown(p.EarliestStart, now)
	if p.State == rqv1.ReservationActivating {
		words = "activating"
	}
	if p.Confidence != "" {
		words += ", " + p.Confidence
	}
	return fmt.Sprintf("%s (%s)", ZonedClock(p.EarliestStart, now), words)
}

func (p *Promise) sliceInWords(wide bool) string {
	if p.IntendedSlice == nil {
		return ""
	}
	words := SelectorText(p.IntendedSlice.Domain)
	if len(p.IntendedSlice.Nodes) == 0 {
		return words
	}
	if words != "" {
		words += ": "
	}
	return words + NodesInWords(p.IntendedSlice.Nodes, wide)
}

// conflictLines is the conflict set as a table.
func (p *Promise) conflictLines(form session.Form) ([]string, error) {
	if len(p.ConflictSet) == 0 {
		return nil, nil
	}
	shown := p.ConflictSet
	if !form.Wide && len(shown) > conflictsShown {
		shown = shown[:conflictsShown]
	}
	table := &metav1.Table{ColumnDefinitions: session.Columns("Run", "Owner~1", "Action", "GPUs", "Chance")}
	for i := range shown {
		c := &shown[i]
		table.Rows = append(table.Rows, session.Row(nil, FullName(c.Run), string(c.Owner), string(c.Action),
			fmt.Sprint(c.GPUs), risk.Percent(c.Probability)))
	}
	var text strings.Builder
	if err := form.Print(table, &text, false); err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	all := p.ConflictSet
	if more := p.moreThan(shown); more != "" && len(shown) < len(all) {
		lines = append(lines, fmt.Sprintf("and %s; -o wide shows %s", more, howMany(len(all), p.moreThan(all) == "")))
	} else if more != "" {
		lines = append(lines, fmt.Sprintf("and %s; the Reservation lists all when it activates", more))
	}
	return lines, nil
}

// moreThan says how much may be cut beyond some entries; empty when nothing may.
func (p *Promise) moreThan(shown []rqv1.Conflict) string {
	gpus, entries := int32(0), len(p.ConflictSet)
	for i := range p.ConflictSet {
		gpus += p.ConflictSet[i].GPUs
	}
	if all := p.Conflicts; all != nil && int(all.Total) > entries {
		gpus, entries = all.GPUs, int(all.Total)
	}
	for i := range shown {
		gpus -= shown[i].GPUs
	}
	if entries <= len(shown) {
		return ""
	}
	return fmt.Sprintf("%d more (%d GPUs)", entries-len(shown), gpus)
}

// howMany is a number of things, or all of them.
func howMany(n int, all bool) string {
	if all {
		return "all"
	}
	return fmt.Sprint(n)
}
