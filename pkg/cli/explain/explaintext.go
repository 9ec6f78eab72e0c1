package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// momentsShown is how many moments of the past the text tells, the latest ones, unless all are asked for.
const momentsShown = 20

// writeExplanation writes an explanation for people.
func writeExplanation(out io.Writer, e explanation, form session.Form, colours bool) error {
	var text strings.Builder
	standing := string(e.Phase)
	if e.Suspended {
		standing = view.Suspended
	}
	fmt.Fprintf(&text, "Run %s/%s is %s.\n", e.Namespace, e.Run, strings.ReplaceAll(view.Paint(standing, colours),
		" ", ""))
	fmt.Fprintf(&text, "  asks:    %s\n", asksInWords(e))
	writeStanding(&text, e, form.Wide)
	if e.Message != "" && (e.Waits == nil || e.Waits.Message != e.Message) {
		fmt.Fprintf(&text, "  message: %s\n", printers.EscapeTerminal(e.Message))
	}
	if err := writeWait(&text, e, form); err != nil {
		return err
	}
	writeStory(&text, e, form.Wide)
	writeHoldings(&text, e, form.Wide)
	if len(e.Events) > 0 {
		text.WriteString("\nEvents:\n")
	}
	for _, v := range e.Events {
		times := ""
		if v.Count > 1 {
			times = fmt.Sprintf(" (%d times)", v.Count)
		}
		fmt.Fprintf(&text, "  %s  %s%s%s\n", session.ClockToSecond(v.Time.Time, e.At.Time), v.Type,
			view.Because(v.Reason, v.Message), times)
	}
	for i, what := range e.Unread {
		if i == 0 {
			text.WriteString("\nCould not be read:\n")
		}
		fmt.Fprintf(&text, "  %s\n", what)
	}
	_, err := io.WriteString(out, session.LocalTimes(text.String(), e.At.Time))
	return err
}

// writeStanding says what a Run has of what it tends to.
func writeStanding(text *strings.Builder, e explanation, wide bool) {
	running := e.Phase == rqv1.RunRunning
	if running && e.Width != nil {
		fmt.Fprintf(text, "  width:   %d/%d GPUs%s\n", e.Width.Allocated, e.Width.Desired, view.Bracketed(e.Width.Pending))
	}
	if running && e.Ready > 0 {
		fmt.Fprintf(text, "  ready:   %s\n", view.Counted(int(e.Ready), "rank"))
	}
	if running && e.Spares != nil {
		fmt.Fprintf(text, "  spares:  %s\n", e.Spares.inWords())
	}
	if words := attemptInWords(e); words != "" {
		fmt.Fprintf(text, "  attempt: %s\n", words)
	}
	if e.Maintenance != "" {
		fmt.Fprintf(text, "  outage:  %s\n", printers.EscapeTerminal(e.Maintenance))
	}
	if u := e.Used; u != nil {
		on := ""
		if len(u.Nodes) > 0 {
			on = " on " + view.NodesInWords(u.Nodes, wide)
		}
		fmt.Fprintf(text, "  used:    %s GPU-hours in %s%s\n", view.Short(u.GPUHours),
			duration.HumanDuration(time.Duration(u.ElapsedSeconds)*time.Second), on)
	}
	if e.Shards != nil {
		fmt.Fprintf(text, "  shards:  %s\n", e.Shards.inWords())
	}
}

// attemptInWords says how often the Run has started again since its time was over, and, while it waits, since when it
// has its place; empty where that is its age.
func attemptInWords(e explanation) string {
	var words []string
	if t := e.Timeouts; t != nil {
		words = append(words, fmt.Sprintf("number %d; its maxDuration was over %s, last at %s", e.Attempt+1,
			view.Counted(int(t.Count), "time"), view.Clock(t.Last, e.At.Time)))
	}
	if e.PlaceSince != nil && e.Phase == rqv1.RunPending {
		words = append(words, "its place in line counts from "+view.Clock(*e.PlaceSince, e.At.Time))
	}
	return strings.Join(words, "; ")
}

func asksInWords(e explanation) string {
	words := fmt.Sprintf("%d GPUs of type %s for %s", e.Asks.GPUs, e.Asks.GPUType, e.Owner)
	switch groups := e.Asks.GroupGPUs; {
	case groups > 0 && groups == e.Asks.GPUs:
		words += " that all share a fast-fabric domain"
	case groups > 0:
		words += fmt.Sprintf(", in %d groups of %d that each share a fast-fabric domain", e.Asks.GPUs/groups, groups)
	}
	if m := e.Asks.Malleable; m != nil {
		words += fmt.Sprintf(", malleable from %d to %d by %d", m.MinTotalGPUs, m.MaxTotalGPUs, m.StepGPUs)
	}
	switch spare := e.Asks.SparesPerGroup; {
	case spare > 0 && e.Asks.GroupGPUs > 0:
		words += fmt.Sprintf(", %d spare GPUs to a group", spare)
	case spare > 0:
		words += fmt.Sprintf(", %d spare GPUs", spare)
	}
	if e.Asks.Opportunistic {
		words += ", opportunistic: in shards, on GPUs that nobody else needs at the moment"
	}
	if e.Asks.PriorityClass != "" {
		words += ", priority " + view.Priority(e.Asks.PriorityClass, e.Asks.Priority) + " among its owner's Runs"
	}
	if e.Asks.GPUsPerPod > 0 {
		words += fmt.Sprintf(", %d to a pod", e.Asks.GPUsPerPod)
	}
	return words
}

// writeWait says what the Run waits for, and what is promised to it.
func writeWait(text *strings.Builder, e explanation, form session.Form) error {
	if !e.Looked {
		fmt.Fprintf(text, "\n%s\n", view.NotLooked)
	}
	if e.Waits == nil || !e.Looked {
		return nil
	}
	fmt.Fprintf(text, "\nWaits%s\n", view.Because(e.Waits.Reason, e.Waits.Message))
	for _, line := range view.HelpLines(e.Waits.Refusal) {
		fmt.Fprintf(text, "  would help: %s\n", printers.EscapeTerminal(line))
	}
	facts := []view.Fact{{Label: "in line", Lines: view.Only(view.PlaceInLine(e.Waits.Queue, e.Asks.GPUType, e.At.Time))}}
	facts = append(facts, view.ForecastFacts(e.Forecast, e.At.Time)...)
	if promised := e.Waits.Promised(e.Reservations); promised != nil {
		var err error
		if facts, err = promised.Facts(e.At.Time, form); err != nil {
			return err
		}
	}
	view.WriteFacts(text, "  ", func(label string) string { return label + ":" }, facts)
	return nil
}

// writeStory tells what happened, and after that what is to come.
func writeStory(text *strings.Builder, e explanation, wide bool) {
	fmt.Fprintf(text, "\nWhat happened, in %s:\n", e.At.Format("MST"))
	past := slices.IndexFunc(e.Story, func(m moment) bool { return m.Time.After(e.At.Time) })
	if past < 0 {
		past = len(e.Story)
	}
	shown := e.Story[:past]
	if more := past - momentsShown; more > 0 && !wide {
		fmt.Fprintf(text, "  %d earlier moments; -o wide shows all\n", more)
		shown = shown[more:]
	}
	for _, m := range shown {
		m = m.withoutRepetition()
		fmt.Fprintf(text, "  %s  %s%s\n", session.ClockToSecond(m.Time.Time, e.At.Time), m.What,
			view.Because(m.Reason, m.Message))
	}
	if past < len(e.Story) {
		text.WriteString("\nWhat comes next:\n")
	}
	for _, m := range e.Story[past:] {
		fmt.Fprintf(text, "  %s, %s  %s%s\n", view.Clock(m.Time, e.At.Time), view.Countdown(m.Time, e.At.Time), m.What,
			view.Because(m.Reason, m.Message))
	}
	if more := int(e.AtRiskTotal) - len(e.AtRisk); more > 0 {
		fmt.Fprintf(text, "  and at risk from %d more Reservations\n", more)
	}
}

func writeHoldings(text *strings.Builder, e explanation, wide bool) {
	if len(e.Holds) > 0 {
		text.WriteString("\nHolds:\n")
	}
	for _, h := range e.Holds {
		role := ""
		if h.Role != "Active" {
			role = " (" + strings.ToLower(string(h.Role)) + ")"
		}
		domain := ""
		if h.Domain != "" {
			domain = " in " + h.Domain
		}
		fmt.Fprintf(text, "  group %d%s: %d GPUs%s on %s; paid by %s/%s (%s)\n",
			h.Group, role, h.GPUs, domain, view.NodesInWords(h.Nodes, wide), h.Budget, h.Envelope, h.Payer)
	}
	if len(e.Gave) > 0 {
		text.WriteString("\nReleased:\n")
	}
	for _, g := range e.Gave {
		fmt.Fprintf(text, "  %d GPUs (%s, %s), last at %s\n", g.GPUs, g.Reason, view.Counted(g.Leases, "GPU lease"),
			session.ClockToSecond(g.Last.Time, e.At.Time))
	}
	if len(e.Lost) > 0 {
		text.WriteString("\nWork lost, because it was not saved:\n")
	}
	for _, w := range e.Lost {
		fmt.Fprintf(text, "  %s GPU-hours (%s)\n", view.Short(json.Number(w.GPUHours)), w.Cause)
	}
}
