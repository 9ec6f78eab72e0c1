package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// layer is where text around a piece of code stands among others around the same piece, the outermost first.
type layer int

const (
	aStatement layer = iota
	anOperand
	aCondition
	itself
)

// edit is a change of the text of a file. Its text has %d where the number of its mutant goes.
type edit struct {
	mutant *mutant
	// from and to are offsets of the piece of code; before and after go around it.
	from, to      int
	layer         layer
	before, after string
	// replace says that before is in place of the piece.
	replace bool
}

// isMutant asks whether the mutant of an edit is to be made.
const isMutant = "mutant_.Is(%d)"

// finder finds the mutants of a file.
type finder struct {
	*source
	mutants []*mutant
	edits   []edit
	// function is the one that the code is in.
	function string
}

// find returns all mutants of a file in the order of its code, and the edits that put them in.
func find(s *source) ([]*mutant, []edit) {
	f := &finder{source: s}
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body == nil {
				continue
			}
			f.function = d.Name.Name
			if d.Recv != nil {
				f.function = f.receiver(d.Recv.List[0].Type) + "." + f.function
			}
			ast.PreorderStack(d, nil, f.visit)
		case *ast.GenDecl:
			if d.Tok != token.VAR {
				continue
			}
			for _, spec := range d.Specs {
				f.function = "var " + spec.(*ast.ValueSpec).Names[0].Name
				for _, value := range spec.(*ast.ValueSpec).Values {
					ast.PreorderStack(value, nil, f.visit)
				}
			}
		}
	}
	return f.mutants, f.edits
}

// receiver is the type of a method's receiver, without parameters of the type.
func (f *finder) receiver(t ast.Expr) string {
	if star, points := t.(*ast.StarExpr); points {
		return "(*" + f.receiver(star.X) + ")"
	}
	if indexed, generic := t.(*ast.IndexExpr); generic {
		t = indexed.X
	}
	return f.say(t)
}

// mutant adds one, and returns it for its edits.
func (f *finder) mutant(n ast.Node, operator, text, change string) *mutant {
	m := &mutant{Package: f.pkg, File: f.name, Line: f.fset.Position(n.Pos()).Line, Function: f.function,
		Operator: operator, Text: text, Change: change}
	f.mutants = append(f.mutants, m)
	return m
}

// wrap puts text around a piece of code.
func (f *finder) wrap(m *mutant, n ast.Node, l layer, before, after string) {
	f.edits = append(f.edits, edit{mutant: m, from: f.at(n.Pos()), to: f.at(n.End()), layer: l, before: before,
		after: after})
}

// swap puts text in the place of a piece of code of a length, in bytes.
func (f *finder) swap(m *mutant, at token.Pos, length int, with string) {
	f.edits = append(f.edits, edit{mutant: m, from: f.at(at), to: f.at(at) + length, before: with, replace: true})
}

func (f *finder) visit(n ast.Node, above []ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.CONST
	case *ast.ArrayType, *ast.TypeSpec:
		return false // a length has to be constant
	case *ast.FuncDecl:
		f.early(n)
	case *ast.IfStmt:
		f.negate(n.Cond)
	case *ast.ForStmt:
		f.negate(n.Cond)
	case *ast.SwitchStmt:
		f.cases(n)
	case *ast.ReturnStmt:
		f.returns(n, above)
	case *ast.ExprStmt:
		f.call(n, above)
	case *ast.BinaryExpr:
		f.binary(n)
		if (n.Op == token.EQL || n.Op == token.NEQ) && !f.isCondition(n, above) {
			f.negate(n)
		}
	case *ast.AssignStmt:
		f.assign(n)
	case *ast.IncDecStmt:
		f.step(n)
	case *ast.BasicLit:
		f.constant(n, above)
	}
	return true
}

// isBool tells whether an expression is of type bool itself and is not constant.
func (f *finder) isBool(e ast.Expr) bool {
	t := f.facts.Types[e]
	basic, is := t.Type.(*types.Basic)
	return is && (basic.Kind() == types.Bool || basic.Kind() == types.UntypedBool) && t.Value == nil
}

// negate has a condition be true when it is false.
func (f *finder) negate(e ast.Expr) {
	if e == nil || !f.isBool(e) {
		return
	}
	m := f.mutant(e, "negate", f.say(e), "!("+f.say(e)+")")
	f.wrap(m, e, aCondition, "((", ") != "+isMutant+")")
}

// isCondition tells whether an expression is negated where it stands.
func (f *finder) isCondition(e ast.Expr, above []ast.Node) bool {
	switch parent := above[len(above)-1].(type) {
	case *ast.IfStmt:
		return parent.Cond == e
	case *ast.ForStmt:
		return parent.Cond == e
	case *ast.CaseClause:
		return slices.Contains(parent.List, e)
	}
	return false
}

// cases negates the conditions of a switch that compares nothing.
func (f *finder) cases(n *ast.SwitchStmt) {
	if n.Tag != nil {
		return
	}
	for _, clause := range n.Body.List {
		for _, e := range clause.(*ast.CaseClause).List {
			f.negate(e)
		}
	}
}

// number tells whether an expression is of some kinds of types. A parameter that stands for a type is of none.
func (f *finder) number(e ast.Expr, kinds types.BasicInfo) bool {
	t := f.facts.Types[e].Type
	if t == nil {
		return false
	}
	if _, any := types.Unalias(t).(*types.TypeParam); any {
		return false
	}
	basic, is := t.Underlying().(*types.Basic)
	return is && basic.Info()&kinds != 0 && (basic.Info()&types.IsUntyped == 0 || f.facts.Types[e].Value != nil)
}

// calls are what an operator becomes, and what a mutant makes of it.
var calls = map[token.Token]struct {
	call     string
	operator string
	other    token.Token
	kinds    types.BasicInfo
}{
	token.LSS: {"Less", "boundary", token.LEQ, types.IsOrdered},
	token.LEQ: {"AtMost", "boundary", token.LSS, types.IsOrdered},
	token.GTR: {"More", "boundary", token.GEQ, types.IsOrdered},
	token.GEQ: {"AtLeast", "boundary", token.GTR, types.IsOrdered},
	token.ADD: {"Plus", "arithmetic", token.SUB, types.IsInteger | types.IsFloat},
	token.SUB: {"Minus", "arithmetic", token.ADD, types.IsInteger | types.IsFloat},
}

// other is what an expression is with another operator.
func (f *finder) other(n *ast.BinaryExpr, op token.Token) string {
	return f.say(n.X) + " " + op.String() + " " + f.say(n.Y)
}

func (f *finder) binary(n *ast.BinaryExpr) {
	if f.facts.Types[n].Value != nil {
		return
	}
	if n.Op == token.LAND || n.Op == token.LOR {
		if !f.isBool(n.X) || !f.isBool(n.Y) {
			return
		}
		other := token.LAND
		if n.Op == token.LAND {
			other = token.LOR
		}
		// Both sides and the whole negated make one of the other, and what is not needed is not asked either.
		m := f.mutant(n, "logic", f.say(n), f.other(n, other))
		f.wrap(m, n.X, anOperand, "(", ") != "+isMutant)
		f.wrap(m, n.Y, anOperand, "(", ") != "+isMutant)
		f.wrap(m, n, itself, "((", ") != "+isMutant+")")
		return
	}
	to, known := calls[n.Op]
	if !known || !f.number(n.X, to.kinds) || !f.number(n.Y, to.kinds) {
		return
	}
	m := f.mutant(n, to.operator, f.say(n), f.other(n, to.other))
	f.wrap(m, n, itself, "mutant_."+to.call+"(%d, ", ")")
	f.swap(m, n.OpPos, len(n.Op.String()), ",")
}

// assign has += subtract and -= add.
func (f *finder) assign(n *ast.AssignStmt) {
	other := map[token.Token]string{token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+="}[n.Tok]
	if other == "" || !f.number(n.Lhs[0], types.IsInteger|types.IsFloat) {
		return
	}
	spelled := f.typeText(f.facts.Types[n.Lhs[0]].Type, n.Pos())
	if spelled == "" {
		return
	}
	m := f.mutant(n, "arithmetic", f.say(n), f.say(n.Lhs[0])+" "+other+" "+f.say(n.Rhs[0]))
	f.wrap(m, n.Rhs[0], anOperand, "mutant_.Signed["+spelled+"](%d, ", ")")
}

// step has ++ and -- count the other way.
func (f *finder) step(n *ast.IncDecStmt) {
	spelled := f.typeText(f.facts.Types[n.X].Type, n.Pos())
	if spelled == "" || !f.number(n.X, types.IsInteger|types.IsFloat) {
		return
	}
	becomes, other := "+=", "--"
	if n.Tok == token.DEC {
		becomes, other = "-=", "++"
	}
	m := f.mutant(n, "arithmetic", f.say(n), f.say(n.X)+other)
	f.swap(m, n.TokPos, 2, " "+becomes+" mutant_.Signed["+spelled+"](%d, 1)")
}
