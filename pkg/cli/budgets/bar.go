package budgets

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/davidlangworthy/jobtree/pkg/cli/view"
	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// The width of a bar, the least one on a terminal, and what the numbers behind it have before it is made longer.
const (
	barCells   = 20
	barLeast   = 8
	numbersFew = 26
)

// room divides what a terminal of so many columns has beside what is taken, into a bar and the numbers behind it.
func room(columns, taken int) (cells, left int) {
	if columns == 0 {
		return barCells, math.MaxInt
	}
	cells = min(barCells, max(barLeast, columns-taken-numbersFew))
	return cells, columns - taken - cells
}

// drawBar draws an envelope in so many cells. Whatever there is has at least one.
func drawBar(p *view.Palette, e *envelopeUsage, cells int) string {
	if e.ObservedAt == nil {
		return "[" + strings.Repeat("?", cells) + "]"
	}
	shut := max(0, e.Concurrency-e.held()-e.FreeGPUs)
	parts := [6]int32{e.OwnedGPUs, e.FamilyGPUs + e.LentGPUs, e.SpareGPUs, e.OverdraftGPUs, e.FreeGPUs, shut}
	var text strings.Builder
	for i, n := range picture.Divide(parts[:], cells) {
		text.WriteString(strings.Repeat(p.Cells[i], n))
	}
	return "[" + text.String() + "]"
}

// numbers says what a bar shows, in so many columns: what is used and free at least.
func (e *envelopeUsage) numbers(columns int) string {
	if e.ObservedAt == nil {
		return fmt.Sprintf("%d GPUs, not processed yet", e.Concurrency)
	}
	words := []string{fmt.Sprintf("%d of %d used", e.held(), e.Concurrency)}
	for _, part := range []struct {
		gpus int32
		what string
	}{{e.OverdraftGPUs, "overdraft"}, {e.FamilyGPUs, "lent to family"}, {e.LentGPUs, "lent"}, {e.SpareGPUs, "spare"}} {
		if part.gpus > 0 {
			words = append(words, fmt.Sprintf("%d %s", part.gpus, part.what))
		}
	}
	words = append(words, fmt.Sprintf("%d free", e.FreeGPUs))
	hours := []string{view.Short(e.SpentGPUHours) + " GPU-hours spent"}
	if by := e.lostBy(); by != "" {
		hours = append(hours, fmt.Sprintf("%s lost (%s)", view.Short(e.LostGPUHours), by))
	}
	if e.MaxGPUHours != nil {
		hours = append(hours, e.left()+" left")
	}
	if e.RunsOut != nil {
		hours = append(hours, "runs out "+e.end())
	}
	for {
		text := strings.TrimSuffix(strings.Join(words, ", ")+"; "+strings.Join(hours, ", "), "; ")
		switch {
		case len(hours) > 0 && len(text) > columns:
			hours = hours[:len(hours)-1]
		case len(words) > 2 && len(text) > columns:
			words = slices.Delete(words, len(words)-2, len(words)-1)
		default:
			return text
		}
	}
}
