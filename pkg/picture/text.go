package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Style is how a picture is drawn as text.
type Style struct {
	Letters *Letters
	// Colours has each Run have its own, and Width is how many columns there are; 0 for as many as it takes.
	Colours bool
	Width   int
}

// What stands for GPUs that no Run holds.
const (
	freeSign     = '.'
	promisedSign = ':'
	shutSign     = 'x'
	foreignSign  = '*'
	brokenSign   = '!'
)

// gap is between two cells, and between two words of a legend.
const gap = "   "

// Text draws nodes, in the order that they have: a row for each domain, in it a cell for each node and in that a
// character for each GPU; then what the characters mean, and which nodes take nothing new.
func Text(nodes []Node, s Style) string {
	var out strings.Builder
	heads, cells := headsOf(nodes), cellsOf(nodes, s)
	for from := 0; from < len(nodes); {
		to := from + 1
		for to < len(nodes) && heads[to] == heads[from] {
			to++
		}
		writeWrapped(&out, "  "+heads[from]+gap, cells[from:to], gap, s.Width)
		from = to
	}
	out.WriteString("\n")
	writeWrapped(&out, "  ", legend(nodes, s), gap, s.Width)
	for i := range nodes {
		if n := &nodes[i]; !n.TakesWork() {
			out.WriteString(Sentence(fmt.Sprintf("node %s: %s", n.Name, n.why()), s.Width))
		}
	}
	return out.String()
}

// why says why a node takes nothing new.
func (n *Node) why() string {
	state, why := string(n.State), n.Why
	if n.LeftOut != "" {
		state, why = "left out", n.LeftOut
	}
	if why == "" {
		return state
	}
	return state + " (" + why + ")"
}

// headsOf names the rows of nodes, in one width: the domain, and the levels above it; the GPU type where there are
// several.
func headsOf(nodes []Node) []string {
	several := slices.ContainsFunc(nodes, func(n Node) bool { return n.GPUType != nodes[0].GPUType })
	heads := make([]string, len(nodes))
	for i := range nodes {
		heads[i] = headOf(nodes[i].Domain, nodes[i].GPUType, several)
	}
	return padded(heads)
}

func headOf(values []string, gpuType string, several bool) string {
	named := make([]string, len(values))
	for i, value := range values {
		named[i] = cmp.Or(value, "?")
	}
	var parts []string
	if n := len(named); n > 0 {
		parts = append(parts, named[n-1])
		if n > 1 {
			parts = append(parts, strings.Join(named[:n-1], "/"))
		}
	}
	if several {
		parts = append(parts, cmp.Or(gpuType, "?"))
	}
	return strings.Join(parts, "  ")
}

// padded gives texts one width.
func padded(texts []string) []string {
	width := 0
	for _, text := range texts {
		width = max(width, columnsOf(text))
	}
	for i, text := range texts {
		texts[i] = text + strings.Repeat(" ", width-columnsOf(text))
	}
	return texts
}

// cellsOf draws nodes, in one width.
func cellsOf(nodes []Node, s Style) []string {
	names, cells := make([]string, len(nodes)), make([]string, len(nodes))
	for i := range nodes {
		names[i], cells[i] = nodes[i].Name, nodes[i].draw(s)
	}
	names, cells = padded(names), padded(cells)
	for i := range cells {
		cells[i] = names[i] + " " + cells[i]
	}
	return cells
}

// draw draws a node's GPUs: the letter of whoever uses them, a small one where they stand by.
func (n *Node) draw(s Style) string {
	var out strings.Builder
	for _, span := range n.Spans {
		by, sign := cmp.Or(span.Tenant, span.Run), rune(0)
		switch span.Use {
		case Foreign:
			sign = foreignSign
		case Broken:
			sign = brokenSign
		case Free:
			sign = n.freeSign()
		case Spare:
			sign = rune(s.Letters.Of(by))
			if span.Tenant == "" {
				sign = unicode.ToLower(sign)
			}
		default:
			sign = rune(s.Letters.Of(by))
		}
		text := strings.Repeat(string(sign), span.GPUs)
		if s.Colours && by != "" {
			text = paint(s.Letters.place(by), text)
		}
		out.WriteString(text)
	}
	return out.String()
}

// freeSign stands for GPUs that nobody uses.
func (n *Node) freeSign() rune {
	switch {
	case !n.TakesWork():
		return shutSign
	case len(n.For) > 0:
		return promisedSign
	}
	return freeSign
}

// legend says what the characters mean that are in the picture.
func legend(nodes []Node, s Style) []string {
	var words []string
	holders := Holders(nodes)
	none, unnamed := 0, 0
	for _, h := range holders {
		if s.Letters.Of(h.Run) == nobody {
			none, unnamed = none+1, unnamed+h.GPUs
		}
	}
	for n, run := range s.Letters.order {
		at := slices.IndexFunc(holders, func(h Holder) bool { return h.Run == run })
		if at < 0 {
			continue
		}
		letter := string(s.Letters.Of(run))
		if holders[at].Spare > 0 {
			letter += strings.ToLower(letter)
		}
		if s.Colours {
			letter = paint(n, letter)
		}
		words = append(words, fmt.Sprintf("%s %s %d", letter, run, holders[at].GPUs))
	}
	if none > 0 {
		words = append(words, fmt.Sprintf("%c %d other Runs %d", nobody, none, unnamed))
	}
	return append(words, otherwise(nodes)...)
}

// otherwise says how many GPUs no Run holds, and why; that some are free also where none are.
func otherwise(nodes []Node) []string {
	count := map[rune]int{}
	for i := range nodes {
		n := &nodes[i]
		count[foreignSign] += n.GPUs(Foreign)
		count[brokenSign] += n.GPUs(Broken)
		count[n.freeSign()] += n.GPUs(Free)
	}
	words := []string{}
	for _, of := range []struct {
		sign rune
		what string
	}{{foreignSign, "pods that are not jobtree's"}, {brokenSign, "broken"}, {shutSign, "unavailable"},
		{promisedSign, "free and promised"}, {freeSign, "free"}} {
		if count[of.sign] > 0 || of.sign == freeSign {
			words = append(words, fmt.Sprintf("%c %s %d", of.sign, of.what, count[of.sign]))
		}
	}
	return words
}

// Words says when and where a Run is going to start.
func (p *Promise) Words(now time.Time) string {
	const shown = 8
	nodes := strings.Join(p.Nodes[:min(shown, len(p.Nodes))], " ")
	if more := len(p.Nodes) - shown; more > 0 {
		nodes = fmt.Sprintf("%s and %d more", nodes, more)
	}
	when := "starts now"
	if in := p.At.Sub(now).Round(time.Second); in > 0 {
		when = fmt.Sprintf("starts within %s,", duration.HumanDuration(in))
	}
	return fmt.Sprintf("%s %s on %s", p.Run, when, nodes)
}

// Sentence is a text below a picture, on as many lines of a width (0 for any) as it takes.
func Sentence(text string, width int) string {
	first, others, _ := strings.Cut(text, " ")
	var out strings.Builder
	writeWrapped(&out, "  "+first+" ", strings.Split(others, " "), " ", width)
	return out.String()
}

// writeWrapped writes words after a head, with something between two, on as many lines of a width as it takes.
func writeWrapped(out *strings.Builder, head string, words []string, between string, width int) {
	indent := strings.Repeat(" ", columnsOf(head))
	line, columns := head, len(indent)
	for i, word := range words {
		n := columnsOf(word)
		switch {
		case i > 0 && width > 0 && columns+len(between)+n > width:
			out.WriteString(strings.TrimRight(line, " ") + "\n")
			line, columns = indent, len(indent)
		case i > 0:
			line, columns = line+between, columns+len(between)
		}
		line, columns = line+word, columns+n
	}
	out.WriteString(strings.TrimRight(line, " ") + "\n")
}

// columnsOf is how many columns a text takes, colours apart.
func columnsOf(text string) int {
	n := 0
	for len(text) > 0 {
		if rest, found := strings.CutPrefix(text, "\033["); found {
			_, text, _ = strings.Cut(rest, "m")
			continue
		}
		_, size := utf8.DecodeRuneInString(text)
		n, text = n+1, text[size:]
	}
	return n
}
