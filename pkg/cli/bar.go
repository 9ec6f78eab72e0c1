package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
)

// barCells is the width of a bar.
const barCells = 20

// palette holds the cells of a bar, by what the GPUs are: owned, lent to whomever, spare, overdraft, free, and shut:
// within the concurrency and yet not to be had; then the branches of a tree.
type palette struct {
	cells               [6]string
	branch, last, trunk string
}

var (
	blocks = palette{cells: [6]string{"█", "▓", "▒", "!", "░", "·"}, branch: "├── ", last: "└── ", trunk: "│   "}
	ascii  = palette{cells: [6]string{"#", "+", "=", "!", ".", "x"}, branch: "|-- ", last: "`-- ", trunk: "|   "}
)

// barsFor chooses blocks for terminals that show UTF-8 and colours, and ASCII for all other outputs: files, pipes, dumb
// terminals.
func barsFor(out io.Writer) palette {
	locale := ""
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale = os.Getenv(name); locale != "" {
			break
		}
	}
	locale = strings.ReplaceAll(strings.ToLower(locale), "-", "")
	if printers.AllowsColorOutput(out) && strings.Contains(locale, "utf8") {
		return blocks
	}
	return ascii
}

func (p *palette) legend() string {
	words := [6]string{"own", "lent", "spare", "overdraft", "free", "shut by window, GPU-hours or an aggregate cap"}
	parts := make([]string, len(words))
	for i, word := range words {
		parts[i] = p.cells[i] + " " + word
	}
	return strings.Join(parts, "  ")
}

// bar draws an envelope. Whatever there is has at least one cell.
func (p *palette) bar(e *envelopeUsage) string {
	if e.ObservedAt == nil {
		return "[" + strings.Repeat("?", barCells) + "]"
	}
	shut := max(0, e.Concurrency-e.held()-e.FreeGPUs)
	parts := [6]int32{e.OwnedGPUs, e.FamilyGPUs + e.LentGPUs, e.SpareGPUs, e.OverdraftGPUs, e.FreeGPUs, shut}
	var text strings.Builder
	for i, n := range divide(parts[:], barCells) {
		text.WriteString(strings.Repeat(p.cells[i], n))
	}
	return "[" + text.String() + "]"
}

// divide shares cells among parts: one for each that is not nought, the others by size.
func divide(parts []int32, cells int) []int {
	var total int64
	rest := int64(cells)
	for _, n := range parts {
		if n > 0 {
			total += int64(n)
			rest--
		}
	}
	out := make([]int, len(parts))
	var sum, given int64
	for i, n := range parts {
		if n > 0 {
			sum += int64(n)
			upTo := (2*sum*rest + total) / (2 * total)
			out[i] = 1 + int(upTo-given)
			given = upTo
		}
	}
	return out
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
	hours := short(e.SpentGPUHours) + " GPU-hours spent"
	if e.MaxGPUHours != nil {
		hours += fmt.Sprintf(", %s left", e.left())
	}
	if e.RunsOut != nil {
		hours += ", runs out " + e.end()
	}
	return strings.Join(words, ", ") + "; " + hours
}
