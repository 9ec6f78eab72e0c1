package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"os"
	"slices"
	"strings"
)

// layers says in which order the parts of a package stand on each other, the lowest first.
type layers struct {
	// rank is by layer its place.
	rank map[string]int
	// types is by type with behaviour its layer, fields by field of data its own.
	types, fields map[string]string
	// data are the types whose fields belong to several layers. A method of theirs belongs where the highest of what it
	// uses does.
	data map[string]bool
}

// readLayers reads a file of lines "layer NAME", "type NAME…" and "field TYPE.NAME…", of which the latter two
// belong to the layer before them. Without a file there are no layers.
func readLayers(path string) (*layers, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l := &layers{rank: map[string]int{}, types: map[string]string{}, fields: map[string]string{}, data: map[string]bool{}}
	layer := ""
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(line, "#"):
		case words[0] == "layer" && len(words) == 2:
			layer = words[1]
			l.rank[layer] = len(l.rank)
		case words[0] == "data":
			for _, name := range words[1:] {
				l.data[name] = true
			}
		case words[0] == "type" && layer != "":
			for _, name := range words[1:] {
				l.types[name] = layer
			}
		case words[0] == "field" && layer != "":
			for _, name := range words[1:] {
				l.fields[name] = layer
			}
		default:
			return nil, fmt.Errorf("%s: %q says nothing that is known", path, strings.TrimSpace(line))
		}
	}
	return l, nil
}

// uses are the fields of data and the functions of its package that a function names.
type uses struct {
	fields map[string]bool
	calls  map[*function]bool
}

// up returns the places of a package where a function of one layer uses what belongs to a higher one, sorted.
func (l *layers) up(p *source) []string {
	all := map[*function]uses{}
	for _, f := range p.funcs {
		all[f] = l.uses(p, f)
	}
	at := map[*function]int{}
	for _, f := range p.funcs {
		if name, known := l.types[f.recv]; known {
			at[f] = l.rank[name]
		}
	}
	l.settle(p, all, at)
	found := map[string]bool{}
	for f, u := range all {
		own, known := l.types[f.recv]
		if !known {
			continue
		}
		for field := range u.fields {
			if above := l.fields[field]; l.rank[above] > l.rank[own] {
				found[fmt.Sprintf("%s of %s uses %s of %s", p.at(f), own, field, above)] = true
			}
		}
		for g := range u.calls {
			if at[g] > l.rank[own] {
				found[fmt.Sprintf("%s of %s calls %s of %s", p.at(f), own, p.at(g), l.named(at[g]))] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// settle raises each function of data, or of no type, to the highest layer that it uses, until nothing changes.
func (l *layers) settle(p *source, all map[*function]uses, at map[*function]int) {
	for changed := true; changed; {
		changed = false
		for _, f := range p.funcs {
			if _, fixed := l.types[f.recv]; fixed {
				continue
			}
			highest := at[f]
			for field := range all[f].fields {
				highest = max(highest, l.rank[l.fields[field]])
			}
			for g := range all[f].calls {
				highest = max(highest, at[g])
			}
			if highest > at[f] {
				at[f], changed = highest, true
			}
		}
	}
}

func (l *layers) uses(p *source, f *function) uses {
	u := uses{map[string]bool{}, map[*function]bool{}}
	ast.Inspect(f.decl.Body, func(n ast.Node) bool {
		switch e := n.(type) {
		case *ast.SelectorExpr:
			s := p.info.Selections[e]
			if s != nil && s.Kind() == types.FieldVal {
				if name := p.owner[s.Obj()] + "." + s.Obj().Name(); l.fields[name] != "" {
					u.fields[name] = true
				}
			} else if s != nil && p.of[s.Obj()] != nil {
				u.calls[p.of[s.Obj()]] = true
			}
		case *ast.Ident:
			if g := p.of[p.info.Uses[e]]; g != nil {
				u.calls[g] = true
			}
		}
		return true
	})
	return u
}

func (l *layers) named(rank int) string {
	for name, at := range l.rank {
		if at == rank {
			return name
		}
	}
	return ""
}
