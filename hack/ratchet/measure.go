package main

import (
	"go/ast"
	"go/token"
	"go/types"
)

// measure adds a package's figures to found, and returns the places that run up.
func (p *source) measure(found figures, l *layers) (up []string) {
	found.above("lines", p.dir, p.lines())
	methods := map[string]int{}
	for _, f := range p.funcs {
		methods[f.recv]++
	}
	delete(methods, "")
	for of, n := range methods {
		found.above("methods", p.dir+"."+of, n)
	}
	for _, name := range p.pkg.Scope().Names() {
		found.above("fields", p.dir+"."+name, p.fields(structOf(p.pkg.Scope().Lookup(name))))
	}
	if l == nil {
		return nil
	}
	found.above("written-by", p.dir, p.writtenByMany())
	up = l.up(p)
	found.above("up", p.dir, len(up))
	found.above("predicates", p.dir, p.predicates(l))
	found.above("node-tests", p.dir, p.nodeTests())
	return up
}

// fields counts those of a struct, and of the structs of the package that it embeds.
func (p *source) fields(s *types.Struct) int {
	n := s.NumFields()
	for i := range s.NumFields() {
		if f := s.Field(i); f.Embedded() {
			if named, ok := f.Type().(*types.Named); ok && named.Obj().Pkg() == p.pkg {
				n += p.fields(structOf(named.Obj()))
			}
		}
	}
	return n
}

// writtenByMany counts the fields that functions of two types or more write. Functions of none count as one.
func (p *source) writtenByMany() int {
	writers := map[types.Object]map[string]bool{}
	for _, f := range p.funcs {
		note := func(e ast.Expr) {
			for _, field := range p.written(e) {
				if writers[field] == nil {
					writers[field] = map[string]bool{}
				}
				writers[field][f.recv] = true
			}
		}
		ast.Inspect(f.decl.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, e := range n.Lhs {
						note(e)
					}
				}
			case *ast.IncDecStmt:
				note(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					note(n.X)
				}
			case *ast.CallExpr:
				if name, ok := n.Fun.(*ast.Ident); ok && (name.Name == "delete" || name.Name == "clear") {
					note(n.Args[0])
				}
			}
			return true
		})
	}
	n := 0
	for _, by := range writers {
		if len(by) > 1 {
			n++
		}
	}
	return n
}

// written returns the fields of types of the package that an assignment to an expression changes: the last one it
// names, and those of which that one is a part.
func (p *source) written(e ast.Expr) (fields []types.Object) {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			return fields
		case *ast.SelectorExpr:
			s := p.info.Selections[x]
			if s == nil || s.Kind() != types.FieldVal {
				return fields
			}
			if p.owner[s.Obj()] != "" {
				fields = append(fields, s.Obj())
			}
			if _, pointer := p.typeOf(x.X).(*types.Pointer); pointer {
				return fields
			}
			e = x.X
		default:
			return fields
		}
	}
}

// typeOf returns the type of what an identifier or a selection stands for; nil for others.
func (p *source) typeOf(e ast.Expr) types.Type {
	switch x := e.(type) {
	case *ast.Ident:
		if o := p.info.Uses[x]; o != nil {
			return o.Type()
		}
	case *ast.SelectorExpr:
		if s := p.info.Selections[x]; s != nil {
			return s.Type()
		}
	}
	return nil
}

// predicates counts the methods of the package's data that return nothing but a bool.
func (p *source) predicates(l *layers) (n int) {
	for _, f := range p.funcs {
		if f.decl.Recv != nil && l.data[f.recv] && returnsBool(f.decl.Type) {
			n++
		}
	}
	return n
}

// nodeTests counts the function types from a string to a bool.
func (p *source) nodeTests() (n int) {
	for _, f := range p.files {
		ast.Inspect(f, func(node ast.Node) bool {
			t, ok := node.(*ast.FuncType)
			if ok && returnsBool(t) && t.Params.NumFields() == 1 && isNamed(t.Params.List[0].Type, "string") {
				n++
			}
			return true
		})
	}
	return n
}

func returnsBool(t *ast.FuncType) bool {
	return t.Results.NumFields() == 1 && isNamed(t.Results.List[0].Type, "bool")
}

func isNamed(e ast.Expr, name string) bool {
	x, ok := e.(*ast.Ident)
	return ok && x.Name == name
}
