package picture

import (
	"fmt"
	"slices"
	"strings"

	"github.com/davidlangworthy/jobtree/pkg/published"
)

// The width of a bar, and the least one where there is less room.
const (
	barCells = 32
	barLeast = 8
)

// Bars draws domains by their numbers alone, in so many columns (0 for as many as it takes): a bar for each, of what is
// taken and what is free, and then all together.
func Bars(domains []published.Domain, width int) string {
	var out strings.Builder
	several := slices.ContainsFunc(domains, func(d published.Domain) bool { return d.GPUType != domains[0].GPUType })
	heads, total, cells, longest := make([]string, len(domains)), published.Domain{}, barCells, 0
	for i := range domains {
		d := &domains[i]
		heads[i] = headOf(d.Values, d.GPUType, several)
		longest = max(longest, columnsOf(strings.Join(numbers(d), " ")))
		total.GPUs, total.Free, total.Promised = total.GPUs+d.GPUs, total.Free+d.Free, total.Promised+d.Promised
		total.Nodes, total.OutOfService = total.Nodes+d.Nodes, total.OutOfService+d.OutOfService
	}
	heads = padded(heads)
	if width > 0 {
		cells = min(barCells, max(barLeast, width-len("  [] ")-columnsOf(heads[0])-len(gap)-longest))
	}
	for i := range domains {
		var bar strings.Builder
		for j, n := range Divide([]int32{int32(domains[i].GPUs - domains[i].Free), int32(domains[i].Free)}, cells) {
			bar.WriteString(strings.Repeat(string([]rune{nobody, freeSign}[j]), n))
		}
		writeWrapped(&out, fmt.Sprintf("  %s%s[%s] ", heads[i], gap, bar.String()), numbers(&domains[i]), " ", width)
	}
	out.WriteString("\n")
	writeWrapped(&out, "  total: ", numbers(&total), " ", width)
	return out.String()
}

// numbers says what a bar shows, in parts of a sentence.
func numbers(d *published.Domain) []string {
	parts := []string{fmt.Sprintf("%d of %d GPUs free,", d.Free, d.GPUs)}
	if d.Promised > 0 {
		parts = append(parts, fmt.Sprintf("%d promised,", d.Promised))
	}
	nodes := fmt.Sprintf("%d nodes", d.Nodes)
	if d.Nodes == 1 {
		nodes = "1 node"
	}
	if d.OutOfService > 0 {
		return append(parts, nodes, fmt.Sprintf("(%d out of service)", d.OutOfService))
	}
	return append(parts, nodes)
}

// Divide shares cells among parts: one for each that is not nought, the others by size.
func Divide(parts []int32, cells int) []int {
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
