package clitest

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// Cells are what a picture says of each GPU of each node, in words: who uses it, "spare of" whom, or why nobody does.
type Cells map[string][]string

// unnamed is said of GPUs of Runs that have no letter in a text.
const unnamed = "another Run"

// signs are what characters stand for that are no Run's.
var signs = map[rune]string{'*': "foreign", '.': "free", ':': "promised", 'x': "shut", '!': "broken"}

var (
	colour     = regexp.MustCompile("\033\\[[0-9;]*m")
	legendWord = regexp.MustCompile(`^(\S)\S? (.+) \d+$`)
)

// CellsOf reads a fleet that has been drawn as text, and returns the cells of some nodes, and who has a letter.
func CellsOf(text string, nodes []string) (cells Cells, named []string) {
	drawn, legend, _ := strings.Cut(colour.ReplaceAllString(text, ""), "\n\n")
	stands := map[rune]string{'#': unnamed}
	for line := range strings.Lines(legend) {
		for _, word := range strings.Split(strings.TrimSpace(line), "   ") {
			m := legendWord.FindStringSubmatch(word)
			if m == nil {
				continue
			}
			letter := []rune(m[1])[0]
			if unicode.IsUpper(letter) {
				stands[letter] = m[2]
				named = append(named, m[2])
			}
		}
	}
	cells = Cells{}
	for line := range strings.Lines(drawn) {
		words := strings.Fields(line)
		for i, name := range words {
			if !slices.Contains(nodes, name) || i+1 == len(words) {
				continue
			}
			for _, sign := range words[i+1] {
				cells[name] = append(cells[name], said(sign, stands))
			}
		}
	}
	return cells, named
}

func said(sign rune, stands map[rune]string) string {
	if what, ok := signs[sign]; ok {
		return what
	}
	if who := stands[unicode.ToUpper(sign)]; unicode.IsLower(sign) {
		return "spare of " + who
	} else {
		return who
	}
}

// CellsOfNodes returns the cells of nodes, with the name that each Run has, as a text shows them that has letters for
// some Runs.
func CellsOfNodes(nodes []picture.Node, nameOf func(run string) string, named []string) Cells {
	who := func(run string) string {
		if name := nameOf(run); slices.Contains(named, name) {
			return name
		}
		return unnamed
	}
	cells := Cells{}
	for i := range nodes {
		n := &nodes[i]
		for _, s := range n.Spans {
			words := string(s.Use)
			switch {
			case s.Tenant != "":
				words = who(s.Tenant)
			case s.Use == picture.Spare && who(s.Run) != unnamed:
				words = "spare of " + who(s.Run)
			case s.Run != "":
				words = who(s.Run)
			case s.Use == picture.Free && (n.LeftOut != "" || n.State != picture.OK && n.State != picture.Suspect):
				words = "shut"
			case s.Use == picture.Free && len(n.For) > 0:
				words = "promised"
			}
			for range s.GPUs {
				cells[n.Name] = append(cells[n.Name], words)
			}
		}
	}
	return cells
}
