package budgets

import (
	"fmt"
	"strings"

	"github.com/davidlangworthy/jobtree/pkg/cli/view"
	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// barCells is the width of a bar.
const barCells = 20

// drawBar draws an envelope. Whatever there is has at least one cell.
func drawBar(p *view.Palette, e *envelopeUsage) string {
	if e.ObservedAt == nil {
		return "[" + strings.Repeat("?", barCells) + "]"
	}
	shut := max(0, e.Concurrency-e.held()-e.FreeGPUs)
	parts := [6]int32{e.OwnedGPUs, e.FamilyGPUs + e.LentGPUs, e.SpareGPUs, e.OverdraftGPUs, e.FreeGPUs, shut}
	var text strings.Builder
	for i, n := range picture.Divide(parts[:], barCells) {
		text.WriteString(strings.Repeat(p.Cells[i], n))
	}
	return "[" + text.String() + "]"
}

// numbers says what a bar shows.
func (e *envelopeUsage) numbers() string {
	if e.ObservedAt == nil {
		return fmt.Sprintf("%d GPUs, not looked at yet", e.Concurrency)
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
	hours := view.Short(e.SpentGPUHours) + " GPU-hours spent"
	if by := e.lostBy(); by != "" {
		hours += fmt.Sprintf(", %s lost (%s)", view.Short(e.LostGPUHours), by)
	}
	if e.MaxGPUHours != nil {
		hours += fmt.Sprintf(", %s left", e.left())
	}
	if e.RunsOut != nil {
		hours += ", runs out " + e.end()
	}
	return strings.Join(words, ", ") + "; " + hours
}
