package view

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"k8s.io/cli-runtime/pkg/printers"
)

// Palette holds the cells of a bar, by what the GPUs are: owned, lent to whomever, spare, overdraft, free, and shut:
// within the concurrency and yet not to be had; then the branches of a tree.
type Palette struct {
	Cells               [6]string
	Branch, Last, Trunk string
}

var (
	Blocks = Palette{Cells: [6]string{"█", "▓", "▒", "!", "░", "·"}, Branch: "├── ", Last: "└── ", Trunk: "│   "}
	Ascii  = Palette{Cells: [6]string{"#", "+", "=", "!", ".", "x"}, Branch: "|-- ", Last: "`-- ", Trunk: "|   "}
)

// BarsFor chooses blocks for terminals that show UTF-8 and colours, and ASCII for all other outputs: files, pipes,
// dumb terminals.
func BarsFor(out io.Writer) Palette {
	locale := ""
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		locale = os.Getenv(name)
		if locale != "" {
			break
		}
	}
	locale = strings.ReplaceAll(strings.ToLower(locale), "-", "")
	if printers.AllowsColorOutput(out) && strings.Contains(locale, "utf8") {
		return Blocks
	}
	return Ascii
}

// Legend says what the cells of a bar mean, in lines of so many columns; 0 for one line.
func (p *Palette) Legend(columns int) string {
	words := [6]string{"own", "lent", "spare", "overdraft", "free", "closed by window, GPU-hours or an aggregate cap"}
	parts := make([]string, len(words))
	for i, word := range words {
		parts[i] = p.Cells[i] + " " + word
	}
	var text strings.Builder
	at := 0
	for i, part := range parts {
		width := utf8.RuneCountInString(part)
		switch {
		case i > 0 && columns > 0 && at+2+width > columns:
			text.WriteString("\n")
			at = 0
		case i > 0:
			text.WriteString("  ")
			at += 2
		}
		text.WriteString(part)
		at += width
	}
	return text.String()
}
