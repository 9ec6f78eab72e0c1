package plan

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// timeline is all Runs that wait, those with a date first, by date.
type timeline struct {
	At     metav1.Time  `json:"at"`
	Runs   []planAnswer `json:"runs"`
	Unread []string     `json:"unread,omitempty"`
}

// Width of the text where it does not go to a terminal, the least width of the time axis in it, and what is before
// that.
const (
	plainWidth = 80
	axisLeast  = 20
	axisGap    = "  "
)

// axisSpans are the lengths that a time axis can have, beside whole weeks.
var axisSpans = []time.Duration{
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 2 * 24 * time.Hour, 3 * 24 * time.Hour,
}

// axisFor is the shortest span that shows the last start, and something after it.
func axisFor(last time.Duration) time.Duration {
	const week = 7 * 24 * time.Hour
	for _, span := range axisSpans {
		if last < span {
			return span
		}
	}
	return (last/week + 1) * week
}

func (p *planner) printAll(t timeline) error {
	if p.output.ForPeople() {
		return writeTimeline(p.Out, t, view.BarsFor(p.Out), p.FormOf(p.output), p.all)
	}
	names := make([]*session.Answer, len(t.Runs))
	for i := range t.Runs {
		names[i] = session.About("Run", t.Runs[i].Run)
	}
	return p.output.PrintData(p.Out, t, names...)
}

// writeTimeline draws the Runs that have a date on a time axis, and lists those that have none.
func writeTimeline(out io.Writer, t timeline, p view.Palette, form session.Form, namespaces bool) error {
	dated := 0
	for dated < len(t.Runs) && t.Runs[dated].Promise != nil {
		dated++
	}
	var text strings.Builder
	if dated > 0 {
		if err := drawAxis(&text, t, t.Runs[:dated], p, form, namespaces); err != nil {
			return err
		}
	}
	if dated < len(t.Runs) {
		if dated > 0 {
			text.WriteString("\nWithout a date:\n")
		}
		dateless := datelessTable(t.Runs[dated:])
		session.LocalCells(dateless, t.At.Time)
		if err := form.Print(dateless, &text, namespaces); err != nil {
			return err
		}
	}
	var unread strings.Builder
	view.WriteFacts(&unread, "", strings.ToUpper, []view.Fact{{Label: "could not be read", Lines: t.Unread}})
	if unread.Len() > 0 {
		text.WriteString("\n" + unread.String())
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// drawAxis draws a table with a bar behind each row: waiting until the start, and holding GPUs from then on.
func drawAxis(text *strings.Builder, t timeline, runs []planAnswer, p view.Palette, form session.Form,
	namespaces bool) error {
	var table strings.Builder
	if err := form.Beside(axisLeast+len(axisGap)).Print(datedTable(runs, t.At.Time), &table, namespaces); err != nil {
		return err
	}
	lines := strings.Split(strings.TrimRight(table.String(), "\n"), "\n")
	left := 0
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
		left = max(left, utf8.RuneCountInString(lines[i]))
	}
	cells := max(axisLeast, cmp.Or(form.Columns, plainWidth)-left-len(axisGap))
	span := axisFor(runs[len(runs)-1].EarliestStart.Sub(t.At.Time))
	end := "+" + duration.HumanDuration(span)
	for i, line := range lines {
		bar := "now" + strings.Repeat(" ", cells-len("now")-len(end)) + end
		if i > 0 {
			bar = waitBar(&p, &runs[i-1], t.At.Time, span, cells)
		}
		fmt.Fprintf(text, "%s%s%s%s\n", line, strings.Repeat(" ", left-utf8.RuneCountInString(line)), axisGap, bar)
	}
	fmt.Fprintf(text, "\n%s waits  %s runs\n", p.Cells[4], p.Cells[0])
	return nil
}

// waitBar draws a Run on a time axis. A Run without a maxDuration goes on past the end of the axis.
func waitBar(p *view.Palette, a *planAnswer, now time.Time, span time.Duration, cells int) string {
	cell := func(d time.Duration) int { return min(cells, int(max(0, d)/(span/time.Duration(cells)))) }
	starts := a.EarliestStart.Sub(now)
	from, to := min(cell(starts), cells-1), cells
	if a.MaxDuration != nil {
		to = max(from+1, cell(max(0, starts)+a.MaxDuration.Duration))
	}
	return strings.Repeat(p.Cells[4], from) + strings.Repeat(p.Cells[0], to-from)
}

func datedTable(runs []planAnswer, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: session.Columns("Run", "+Owner", "GPUs", "Starts", "Confidence~1",
		"+Starts By", "+Deficit")}
	for i := range runs {
		a := &runs[i]
		starts := view.Countdown(a.EarliestStart, now)
		if a.State == rqv1.ReservationActivating {
			starts = "activating"
		}
		deficit := ""
		if a.DeficitGPUs > 0 {
			deficit = fmt.Sprintf("%d in %s", a.DeficitGPUs, a.Scope)
		}
		table.Rows = append(table.Rows, session.Row(inNamespace(a.Namespace), a.Run, string(a.Owner), fmt.Sprint(a.GPUs),
			starts, a.Confidence,
			view.Clock(a.EarliestStart, now), deficit))
	}
	return table
}

func datelessTable(runs []planAnswer) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: session.Columns("Run", "+Owner", "GPUs", "Ahead?", "Because…")}
	for i := range runs {
		a := &runs[i]
		ahead := ""
		if a.Queue != nil {
			ahead = fmt.Sprintf("%d of %d", a.Queue.Ahead, a.Queue.Of)
		}
		table.Rows = append(table.Rows, session.Row(inNamespace(a.Namespace), a.Run, string(a.Owner), fmt.Sprint(a.GPUs),
			ahead, a.standing()))
	}
	return table
}

// inNamespace is an object of a namespace, from which a table takes its first column.
func inNamespace(namespace string) *rqv1.Run {
	return &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
}
