package session

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/liggitt/tabwriter"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
)

// wideOnly is the priority of columns that only the wide format shows. Those of a lower one than that and above 0 are
// shown where there is room, the lowest first.
const wideOnly = 10

// optional is the format of columns that a terminal does not show where they say nothing, text the type of those that
// are cut rather than that others are left out.
const (
	optional = "optional"
	text     = "text"
)

// textLeast is how many columns of a terminal a text has before others are shown beside it.
const textLeast = 24

// The gaps between two columns of a table, as kubectl has them and where there is less room, and the least of both.
const (
	gap, narrowGap = 3, 2
	cellLeast      = 6
)

// Columns makes a table's header. A name may have these signs:
//
//	+Owner    only the wide format shows the column
//	Spares?   a terminal does not show it where it says nothing
//	Owner~2   a terminal shows it if there is room, after those with lower numbers (1 to 9)
//	Message…  a terminal cuts it, of which the last column is one
func Columns(names ...string) []metav1.TableColumnDefinition {
	definitions := make([]metav1.TableColumnDefinition, len(names))
	for i, name := range names {
		d := metav1.TableColumnDefinition{Type: "string"}
		name, d.Type = marked(name, "…", d.Type, text)
		if bare, rank, ranked := strings.Cut(name, "~"); ranked {
			name, d.Priority = bare, int32(rank[0]-'0')
		}
		name, d.Format = marked(name, "?", "", optional)
		if bare, wide := strings.CutPrefix(name, "+"); wide {
			name, d.Priority = bare, wideOnly
		}
		d.Name = name
		definitions[i] = d
	}
	return definitions
}

// marked takes a sign off a name, and returns what stands for it, or else for its absence.
func marked(name, sign, absent, present string) (bare, means string) {
	bare, there := strings.CutSuffix(name, sign)
	if !there {
		present = absent
	}
	return bare, present
}

// Row makes a table's row of an object; empty cells become "-".
func Row(object runtime.Object, cells ...string) metav1.TableRow {
	r := metav1.TableRow{Object: runtime.RawExtension{Object: object}}
	for _, cell := range cells {
		if cell == "" {
			cell = "-"
		}
		r.Cells = append(r.Cells, cell)
	}
	return r
}

// Form is how much people are shown: all there is in the wide format, or else what a terminal of so many columns has
// room for; 0 for any other output, which has no end.
type Form struct {
	Wide    bool
	Columns int
}

// FormOf is how much a command shows.
func (s *Session) FormOf(o *Output) Form { return Form{o.Wide(), s.Width()} }

// Beside is the form of what stands to the right of something that takes some columns.
func (f Form) Beside(taken int) Form {
	if f.Columns > 0 {
		f.Columns = max(1, f.Columns-taken)
	}
	return f
}

// Print prints a table in the form.
func (f Form) Print(table *metav1.Table, out io.Writer, withNamespace bool) error {
	return PrintTableAs(table, out, printers.PrintOptions{Wide: f.Wide, WithNamespace: withNamespace}, f.Columns)
}

// PrintTable prints a table for people: the wide format has all columns. A terminal shows, unless that is asked for,
// what fits into its width.
func PrintTable(table *metav1.Table, out io.Writer, wide, withNamespace bool) error {
	return PrintTableAs(table, out, printers.PrintOptions{Wide: wide, WithNamespace: withNamespace}, widthOf(out))
}

// PrintTableAs prints a table in a number of columns of a terminal; 0 for as many as it takes.
func PrintTableAs(table *metav1.Table, out io.Writer, options printers.PrintOptions, columns int) error {
	shown, between := *table, gap
	shown.ColumnDefinitions = slices.Clone(table.ColumnDefinitions)
	if columns > 0 && !options.Wide {
		l := layout{&shown, options, columns}
		l.leaveEmptyOut()
		between = l.leaveOut()
	}
	for i := range shown.ColumnDefinitions {
		if d := &shown.ColumnDefinitions[i]; d.Priority < wideOnly {
			d.Priority = 0
		}
	}
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, cellLeast, 4, between, ' ', tabwriter.RememberWidths)
	if err := printers.NewTablePrinter(options).PrintObj(&shown, w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	content := text.Bytes()
	if !options.Wide {
		content = Fit(content, columns)
	}
	_, err := out.Write(content)
	return err
}

// layout finds out what of a table a terminal shows.
type layout struct {
	*metav1.Table
	options printers.PrintOptions
	columns int
}

// leaveEmptyOut leaves optional columns that say nothing to the wide format.
func (l *layout) leaveEmptyOut() {
	for i := range l.ColumnDefinitions {
		says := slices.ContainsFunc(l.Rows, func(row metav1.TableRow) bool {
			return !slices.Contains([]any{"-", "0", "0.00"}, row.Cells[i])
		})
		if l.ColumnDefinitions[i].Format == optional && !says {
			l.ColumnDefinitions[i].Priority = wideOnly
		}
	}
}

// leaveOut leaves columns to the wide format for which there is no room, and returns the gap between the others.
func (l *layout) leaveOut() int {
	if l.takes(l.ColumnDefinitions, gap, false) <= l.columns {
		return gap
	}
	chosen := slices.Clone(l.ColumnDefinitions)
	for i := range chosen {
		if chosen[i].Priority > 0 {
			chosen[i].Priority = wideOnly
		}
	}
	for rank := int32(1); rank < wideOnly; rank++ {
		for i := range chosen {
			if l.ColumnDefinitions[i].Priority != rank {
				continue
			}
			chosen[i].Priority = rank
			if l.takes(chosen, narrowGap, true) > l.columns {
				chosen[i].Priority = wideOnly
			}
		}
	}
	l.ColumnDefinitions = chosen
	return narrowGap
}

// takes is how many columns of a terminal some columns of the table take, with a gap between two; of texts as much
// counts as is not to be cut, where they may be.
func (l *layout) takes(of []metav1.TableColumnDefinition, between int, cut bool) int {
	sum, last := 0, 0
	add := func(width int) {
		sum += max(cellLeast, width+between)
		last = width
	}
	if l.options.WithNamespace {
		add(l.widest("NAMESPACE", namespaceOf))
	}
	for i := range of {
		if of[i].Priority >= wideOnly {
			continue
		}
		width := l.widest(of[i].Name, func(row *metav1.TableRow) string { return fmt.Sprint(row.Cells[i]) })
		if cut && of[i].Type == text {
			width = min(width, textLeast)
		}
		add(width)
	}
	return sum - max(cellLeast, last+between) + last // nothing follows the last one
}

// widest is the width of a column.
func (l *layout) widest(name string, cell func(*metav1.TableRow) string) int {
	width := 0
	if !l.options.NoHeaders {
		width = len(name)
	}
	for i := range l.Rows {
		width = max(width, len(cell(&l.Rows[i])))
	}
	return width
}

// namespaceOf is the namespace of a row's object.
func namespaceOf(row *metav1.TableRow) string {
	object, err := meta.Accessor(row.Object.Object)
	if err != nil {
		return ""
	}
	return object.GetNamespace()
}
