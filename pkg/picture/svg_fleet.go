package picture

import (
	"cmp"
	"fmt"
	"strings"
)

// FleetSVG draws nodes as an image: a row for each domain, a cell for each GPU with the letter of its Run, and a colour
// for each owner of Runs. Owners are by Run, as NAMESPACE/NAME.
func FleetSVG(nodes []Node, letters *Letters, owners map[string]string) string {
	var runs []string
	for _, h := range Holders(nodes) {
		runs = append(runs, h.Run)
	}
	s := newSVG(runs, owners)
	x, row := 0., 0.
	for i := range nodes {
		n := &nodes[i]
		cells := s.cellsOf(n, letters)
		columns := len(cells)
		if columns > 4 {
			columns = min(8, (columns+1)/2)
		}
		wide := max(float64(columns*svgCell), svgLetter*float64(len(n.Name))) + svgMargin
		domain := place(n)
		switch {
		case i == 0 || domain != place(&nodes[i-1]):
			s.y += row + svgLine
			x, row = svgMargin, 0
			s.text(x, s.y-4, "t k", domain)
		case x+wide > svgWidth:
			s.y += row
			x, row = svgMargin, 0
		}
		s.node(n, cells, columns, x)
		x += wide
		row = max(row, float64(svgLine+svgCell*((len(cells)+columns-1)/columns)+6))
	}
	s.y += row
	s.legend(nodes, letters)
	return s.done("The fleet: a cell for each GPU")
}

// place names the domain of a node.
func place(n *Node) string {
	names := make([]string, len(n.Domain))
	for i, value := range n.Domain {
		names[i] = cmp.Or(value, "?")
	}
	return strings.Join(names, " / ")
}

// cell is one GPU in an image.
type cell struct {
	Span
	letter string
}

func (s *svg) cellsOf(n *Node, letters *Letters) (cells []cell) {
	for _, span := range n.Spans {
		letter := ""
		if by := cmp.Or(span.Tenant, span.Run); by != "" {
			letter = string(letters.Of(by))
			if span.Use == Spare && span.Tenant == "" {
				letter = strings.ToLower(letter)
			}
		}
		for range span.GPUs {
			cells = append(cells, cell{span, letter})
		}
	}
	return cells
}

// node draws the name and the cells of a node, and how it is.
func (s *svg) node(n *Node, cells []cell, columns int, x float64) {
	s.text(x, s.y+10, "f", n.Name)
	top := s.y + 15
	for i, c := range cells {
		s.cell(c, x+float64(i%columns*svgCell), top+float64(i/columns*svgCell))
	}
	wide, high := float64(columns*svgCell)-2, float64((len(cells)+columns-1)/columns*svgCell)-2
	switch {
	case n.State == Lost:
		s.line(x, top, x+wide, top+high, "x")
		s.line(x+wide, top, x, top+high, "x")
	case !n.TakesWork():
		s.rect(x-2, top-2, wide+4, high+4, "x d")
	}
	if len(n.For) > 0 {
		s.line(x, top+high+2.5, x+wide, top+high+2.5, "n")
	}
}

// cell draws one GPU: full where it is held, framed where it stands by, is free or is lent, crossed out where it is
// broken.
func (s *svg) cell(c cell, x, y float64) {
	const size = svgCell - 2
	of := s.colour[cmp.Or(c.Tenant, c.Run)]
	switch c.Use {
	case Active, Leaving:
		s.rect(x, y, size, size, "h "+of)
	case Spare, Shard:
		s.rect(x+.75, y+.75, size-1.5, size-1.5, "r "+of)
	case Foreign:
		s.rect(x, y, size, size, "f")
	case Broken:
		s.line(x, y, x+size, y+size, "x")
		s.line(x+size, y, x, y+size, "x")
	default:
		s.rect(x+.5, y+.5, size-1, size-1, "n")
	}
	switch {
	case c.letter == "":
	case c.Use == Active || c.Use == Leaving:
		s.text(x+size/2., y+size-2.5, "b l", c.letter)
	default:
		s.text(x+size/2., y+size-2.5, "t l", c.letter)
	}
}

// legend says which Run has which letter, and how many GPUs are free.
func (s *svg) legend(nodes []Node, letters *Letters) {
	s.y += 10
	x := float64(svgMargin)
	add := func(c cell, words string) {
		wide := svgCell + svgLetter*float64(len(words)) + 2*svgMargin
		if x+wide > svgWidth {
			x, s.y = svgMargin, s.y+svgLine
		}
		s.cell(c, x, s.y)
		s.text(x+svgCell+3, s.y+svgCell-3, "t", words)
		x += wide
	}
	for _, h := range Holders(nodes) {
		add(cell{Span{Use: Active, Run: h.Run}, string(letters.Of(h.Run))}, fmt.Sprintf("%s %d", h.Run, h.GPUs))
	}
	free := 0
	for i := range nodes {
		if nodes[i].TakesWork() {
			free += nodes[i].GPUs(Free)
		}
	}
	add(cell{Span: Span{Use: Free}}, fmt.Sprintf("free %d", free))
	s.y += svgLine
}
