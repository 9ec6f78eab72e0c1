package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// source is a package with what its own names mean. What it imports is unknown: selections inside of it are exact.
type source struct {
	dir   string
	set   *token.FileSet
	files []*ast.File
	pkg   *types.Package
	info  *types.Info
	// owner is by field the type that it belongs to.
	owner map[types.Object]string
	funcs []*function
	of    map[types.Object]*function
}

// function is one with a body.
type function struct {
	decl *ast.FuncDecl
	// recv is the type that it is a method of, or that its first parameter has, if that is of the package.
	recv string
}

func (f *function) name() string { return f.recv + "." + f.decl.Name.Name }

// nothing imports packages without looking at them.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}

func parse(dir string) (*source, error) {
	p := &source{dir: dir, set: token.NewFileSet(), owner: map[types.Object]string{}, of: map[types.Object]*function{}}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range slices.DeleteFunc(paths, func(path string) bool { return !written(path) }) {
		f, err := parser.ParseFile(p.set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
	}
	p.info = &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{},
		Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: nothing{}, Error: func(error) {}} // what is imported is unknown everywhere
	p.pkg, _ = config.Check(dir, p.set, p.files, p.info)
	for _, name := range p.pkg.Scope().Names() {
		fields := structOf(p.pkg.Scope().Lookup(name))
		for i := range fields.NumFields() {
			if p.owner[fields.Field(i)] == "" {
				p.owner[fields.Field(i)] = name
			}
		}
	}
	for _, f := range p.files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				x := &function{decl: d, recv: p.receiver(d)}
				p.funcs, p.of[p.info.Defs[d.Name]] = append(p.funcs, x), x
			}
		}
	}
	return p, nil
}

// structOf returns the fields of what an object names, none if that is no struct.
func structOf(o types.Object) *types.Struct {
	if name, ok := o.(*types.TypeName); ok && !name.IsAlias() {
		if s, ok := name.Type().Underlying().(*types.Struct); ok {
			return s
		}
	}
	return types.NewStruct(nil, nil)
}

// receiver returns the type whose method a function is, or could be.
func (p *source) receiver(d *ast.FuncDecl) string {
	fields := d.Type.Params
	if d.Recv != nil {
		fields = d.Recv
	}
	if len(fields.List) == 0 {
		return ""
	}
	e := fields.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
			continue
		case *ast.IndexExpr:
			e = x.X
			continue
		case *ast.Ident:
			if _, ours := p.pkg.Scope().Lookup(x.Name).(*types.TypeName); ours {
				return x.Name
			}
		}
		return ""
	}
}

// lines counts those that hold code.
func (p *source) lines() int {
	n := 0
	for _, f := range p.files {
		code := map[int]bool{}
		ast.Inspect(f, func(node ast.Node) bool {
			switch node := node.(type) {
			case nil, *ast.CommentGroup, *ast.Comment:
				return false
			case *ast.BasicLit:
				for line := p.line(node.Pos()); line <= p.line(node.End()); line++ {
					code[line] = true
				}
			default:
				code[p.line(node.Pos())] = true
				code[p.line(node.End()-1)] = true
			}
			return true
		})
		n += len(code)
	}
	return n
}

func (p *source) line(at token.Pos) int { return p.set.Position(at).Line }

// at names a function with its file, for people.
func (p *source) at(f *function) string {
	return strings.TrimPrefix(f.name(), ".") + " (" + filepath.Base(p.set.Position(f.decl.Pos()).Filename) + ")"
}
