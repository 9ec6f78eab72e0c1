package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// constant makes a whole number one more or one less.
func (f *finder) constant(n *ast.BasicLit, above []ast.Node) {
	if n.Kind != token.INT || !f.number(n, types.IsInteger) || f.mayNotVary(n, above) {
		return
	}
	spelled := f.typeText(f.facts.Types[n].Type, n.Pos())
	if spelled == "" {
		return
	}
	call, change := "Up", n.Value+" becomes one more"
	if last := n.Value[len(n.Value)-1]; last%2 == 0 && n.Value != "0" {
		call, change = "Down", n.Value+" becomes one less"
	}
	text := n.Value
	if len(above) > 0 {
		switch above[len(above)-1].(type) {
		case *ast.CaseClause, *ast.CompositeLit: // they are long
		default:
			text = f.say(above[len(above)-1])
		}
	}
	m := f.mutant(n, "constant", text, change)
	f.wrap(m, n, itself, "mutant_."+call+"["+spelled+"](%d, ", ")")
}

// mayNotVary tells whether a number has to be constant, or is only a hint of a size.
func (f *finder) mayNotVary(n ast.Node, above []ast.Node) bool {
	for i, parent := range slices.Backward(above) {
		child := n
		if i+1 < len(above) {
			child = above[i+1]
		}
		switch parent := parent.(type) {
		case *ast.KeyValueExpr:
			if parent.Key == child {
				return true
			}
		case *ast.CallExpr:
			name, isName := parent.Fun.(*ast.Ident)
			if !isName || name.Name != "make" || len(parent.Args) < 2 {
				continue
			}
			_, isMap := f.facts.Types[parent.Args[0]].Type.Underlying().(*types.Map)
			if isMap || len(parent.Args) > 2 && parent.Args[2] == child {
				return true
			}
		case ast.Stmt:
			return false
		}
	}
	return false
}

// call leaves a call out whose results nobody uses.
func (f *finder) call(n *ast.ExprStmt, above []ast.Node) {
	call, is := n.X.(*ast.CallExpr)
	if !is || !inList(above) {
		return
	}
	fun := f.say(call.Fun)
	if fun == "panic" || strings.HasPrefix(fun, "klog.") {
		return
	}
	m := f.mutant(n, "delete", f.say(n), "(nothing)")
	f.wrap(m, n, aStatement, "if !"+isMutant+" { ", " }")
}

// inList tells whether the node below others is a statement of a list.
func inList(above []ast.Node) bool {
	switch above[len(above)-1].(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		return true
	}
	return false
}

// early has a function return at once, unless its first statement returns anyway.
func (f *finder) early(n *ast.FuncDecl) {
	if len(n.Body.List) == 0 {
		return
	}
	first := n.Body.List[0]
	if _, returns := first.(*ast.ReturnStmt); returns {
		return
	}
	signature := f.facts.Defs[n.Name].Type().(*types.Signature)
	values, spelled := f.zeros(signature, first.Pos())
	if !spelled {
		return
	}
	m := f.mutant(first, "return early", "func", strings.TrimSpace("return "+values))
	f.wrap(m, first, aStatement, "if "+isMutant+" { return "+values+" }; ", "")
}

// zeros are the zero values of what a function returns, and whether they can all be written.
func (f *finder) zeros(signature *types.Signature, at token.Pos) (text string, spelled bool) {
	var values []string
	for v := range signature.Results().Variables() {
		value := f.zero(v.Type(), at)
		if value == "" {
			return "", false
		}
		values = append(values, value)
	}
	return strings.Join(values, ", "), true
}

// returns has a function return zero values, and true instead of false.
func (f *finder) returns(n *ast.ReturnStmt, above []ast.Node) {
	for _, e := range n.Results {
		name, is := e.(*ast.Ident)
		if is && (name.Name == "true" || name.Name == "false") && f.facts.Uses[name] == types.Universe.Lookup(name.Name) {
			m := f.mutant(e, "negate", f.say(n), "!"+name.Name)
			f.wrap(m, e, aCondition, "((", ") != "+isMutant+")")
		}
	}
	if len(n.Results) == 0 || !inList(above) {
		return
	}
	values, spelled := f.zeros(f.around(above), n.Pos())
	said := strings.TrimSpace(strings.TrimPrefix(f.say(n), "return"))
	if !spelled || said == values || slices.Contains([]string{"true", "false"}, said) || f.empty(n) {
		return
	}
	m := f.mutant(n, "return zero", f.say(n), "return "+values)
	f.wrap(m, n, aStatement, "if "+isMutant+" { return "+values+" }; ", "")
}

// empty tells whether all that is returned are literals without a content.
func (f *finder) empty(n *ast.ReturnStmt) bool {
	return !slices.ContainsFunc(n.Results, func(e ast.Expr) bool {
		switch text := f.say(e); text {
		case "nil", "false", "0", `""`:
			return false
		}
		literal, is := e.(*ast.CompositeLit)
		if !is || len(literal.Elts) > 0 {
			return true
		}
		_, isStruct := f.facts.Types[literal].Type.Underlying().(*types.Struct)
		return !isStruct
	})
}

// around is the signature of the function that nodes are in.
func (f *finder) around(above []ast.Node) *types.Signature {
	for _, n := range slices.Backward(above) {
		switch n := n.(type) {
		case *ast.FuncLit:
			return f.facts.Types[n].Type.(*types.Signature)
		case *ast.FuncDecl:
			return f.facts.Defs[n.Name].Type().(*types.Signature)
		}
	}
	return nil
}
