package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// block is a piece of code that runs as a whole or not at all.
type block struct {
	// File is its path below the checkout, Line where it begins, from 1.
	File string `json:"file"`
	Line int    `json:"line"`
	// Function is what it is in; Text is the code in one line, and Nth counts the same ones of one function, from 0.
	Function string `json:"function"`
	Text     string `json:"text"`
	Nth      int    `json:"nth,omitempty"`
	// By are the names of the profiles that cover it, in alphabetical order.
	By []string `json:"by,omitempty"`
}

// key is the same in another state of the code, whatever stands before the block. A function may move to another file
// of its package.
func (b *block) key() string {
	return fmt.Sprintf("%s %s: %s #%d", filepath.Dir(b.File), b.Function, b.Text, b.Nth)
}

// span is a line of a profile: a block by where it is.
type span struct {
	file                                string
	fromLine, fromColumn, line2, column int
	covered                             bool
}

// merge adds what a profile covers, under a name, to the blocks that are known.
func merge(blocks []*block, root, name, profile string) ([]*block, error) {
	module, err := modulePath(root)
	if err != nil {
		return nil, err
	}
	spans, err := parse(profile, module)
	if err != nil {
		return nil, err
	}
	known := map[string]*block{}
	for _, b := range blocks {
		known[b.key()] = b
	}
	for file, some := range spans {
		found, err := blocksOf(root, file, some)
		if err != nil {
			return nil, err
		}
		for i, b := range found {
			if known[b.key()] == nil {
				known[b.key()] = b
				blocks = append(blocks, b)
			}
			b = known[b.key()]
			if some[i].covered && !slices.Contains(b.By, name) {
				b.By = append(b.By, name)
				slices.Sort(b.By)
			}
		}
	}
	slices.SortFunc(blocks, func(a, b *block) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.key(), b.key()))
	})
	return blocks, nil
}

// modulePath is the path of the module in a directory.
func modulePath(root string) (string, error) {
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if path, is := strings.CutPrefix(line, "module "); is {
			return strings.TrimSpace(path), nil
		}
	}
	return "", fmt.Errorf("%s has no module", root)
}

// parse returns the spans of a profile by the files that they are in, below the module's path, in the order of the
// code. A span that several lines are about is covered if any says so.
func parse(profile, module string) (map[string][]span, error) {
	known := map[span]bool{}
	for line := range strings.Lines(profile) {
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		var s span
		var statements, count int
		file, place, found := strings.Cut(strings.TrimSpace(line), ".go:")
		if _, err := fmt.Sscanf(place, "%d.%d,%d.%d %d %d", &s.fromLine, &s.fromColumn, &s.line2, &s.column, &statements,
			&count); err != nil || !found {
			return nil, fmt.Errorf("%q is no line of a profile: %w", line, err)
		}
		below, ours := strings.CutPrefix(file+".go", module+"/")
		if !ours {
			continue
		}
		s.file = below
		known[s] = known[s] || count > 0
	}
	spans := map[string][]span{}
	for s, covered := range known {
		s.covered = covered
		spans[s.file] = append(spans[s.file], s)
	}
	for _, some := range spans {
		slices.SortFunc(some, func(a, b span) int {
			return cmp.Or(cmp.Compare(a.fromLine, b.fromLine), cmp.Compare(a.fromColumn, b.fromColumn),
				cmp.Compare(a.line2, b.line2), cmp.Compare(a.column, b.column))
		})
	}
	return spans, nil
}

// blocksOf names the spans of a file.
func blocksOf(root, name string, spans []span) ([]*block, error) {
	fset := token.NewFileSet()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	whole := fset.File(file.Pos())
	offset := func(line, column int) int {
		return min(whole.Offset(whole.LineStart(min(line, whole.LineCount())))+column-1, len(text))
	}
	count := map[string]int{}
	blocks := make([]*block, 0, len(spans))
	for _, s := range spans {
		from, to := offset(s.fromLine, s.fromColumn), offset(s.line2, s.column)
		if to < from {
			return nil, fmt.Errorf("%s: a block ends before it begins: the profile is of another state of the code", name)
		}
		b := &block{File: name, Line: s.fromLine, Function: functionAt(file, whole.Pos(from)),
			Text: strings.Join(strings.Fields(string(text[from:to])), " ")}
		same := b.key()
		b.Nth = count[same]
		count[same]++
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// functionAt is the function that has a position in it; empty for none.
func functionAt(file *ast.File, at token.Pos) string {
	for _, d := range file.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is || at < f.Pos() || at > f.End() {
			continue
		}
		if f.Recv != nil {
			return "(" + types.ExprString(f.Recv.List[0].Type) + ")." + f.Name.Name
		}
		return f.Name.Name
	}
	return ""
}
