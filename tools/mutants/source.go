package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is a file of production code, with its types.
type source struct {
	// pkg is the package's path below the module's, name the file's path below the checkout.
	pkg, name string
	text      []byte
	file      *ast.File
	fset      *token.FileSet
	types     *types.Package
	facts     *types.Info
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir, Export, ForTest string
	GoFiles, Deps                    []string
	Module                           *struct{ Path string }
}

// goCommand is the go that is used.
func goCommand() string {
	if name := os.Getenv("GO"); name != "" {
		return name
	}
	return "go"
}

// list has go list tell of packages.
func list(root string, args ...string) (out []*listed, err error) {
	command := exec.Command(goCommand(), append([]string{"list",
		"-json=ImportPath,Dir,Export,ForTest,GoFiles,Deps,Module"}, args...)...)
	command.Dir, command.Stderr = root, os.Stderr
	data, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(args, " "), err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(data)); ; {
		p := &listed{}
		if err := decoder.Decode(p); err == io.EOF {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
}

// read parses packages of the checkout, and finds the types of all that is in them. The first result is the path of
// their module.
func read(root string, patterns []string) (module string, sources []*source, err error) {
	wanted, err := list(root, patterns...)
	if err != nil {
		return "", nil, err
	}
	below, err := list(root, append([]string{"-export", "-deps"}, patterns...)...)
	if err != nil {
		return "", nil, err
	}
	exports := map[string]string{}
	for _, p := range below {
		exports[p.ImportPath] = p.Export
	}
	fset := token.NewFileSet()
	from := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range wanted {
		module = p.Module.Path
		some, err := check(fset, from, root, p)
		if err != nil {
			return "", nil, err
		}
		sources = append(sources, some...)
	}
	return module, sources, nil
}

// check parses and checks one package. Generated files are left out of the result.
func check(fset *token.FileSet, from types.Importer, root string, p *listed) (sources []*source, err error) {
	facts := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{}, Scopes: map[ast.Node]*types.Scope{}}
	var files []*ast.File
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
		below, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		if !ast.IsGenerated(file) {
			sources = append(sources, &source{pkg: filepath.Dir(below), name: below, text: text, file: file, fset: fset,
				facts: facts})
		}
	}
	checked, err := (&types.Config{Importer: from}).Check(p.ImportPath, fset, files, facts)
	for _, s := range sources {
		s.types = checked
	}
	return sources, err
}

// at is the offset of a position in the file.
func (s *source) at(p token.Pos) int { return s.fset.Position(p).Offset }

// say is the text of a node in one line.
func (s *source) say(n ast.Node) string {
	return strings.Join(strings.Fields(string(s.text[s.at(n.Pos()):s.at(n.End())])), " ")
}

// typeText spells a type as it can be written at a position of the file; empty if it cannot.
func (s *source) typeText(t types.Type, at token.Pos) string {
	if t == nil {
		return ""
	}
	name := func(o types.Object) string {
		scope := s.types.Scope().Innermost(at)
		if scope == nil {
			return ""
		}
		if o.Pkg() == nil || o.Pkg() == s.types {
			if _, found := scope.LookupParent(o.Name(), at); found == o {
				return o.Name()
			}
			return ""
		}
		for _, spec := range s.file.Imports {
			local := o.Pkg().Name()
			if spec.Name != nil {
				local = spec.Name.Name
			}
			if strings.Trim(spec.Path.Value, `"`) != o.Pkg().Path() || !o.Exported() {
				continue
			}
			if _, found := scope.LookupParent(local, at); found != nil {
				if _, isPackage := found.(*types.PkgName); isPackage {
					return local + "." + o.Name()
				}
			}
		}
		return ""
	}
	switch t := t.(type) {
	case *types.Basic:
		if t.Info()&types.IsUntyped == 0 {
			return name(types.Universe.Lookup(t.Name()))
		}
	case *types.Alias:
		if t.TypeArgs().Len() == 0 {
			return name(t.Obj())
		}
	case *types.Named:
		if t.TypeArgs().Len() == 0 && t.TypeParams().Len() == 0 {
			return name(t.Obj())
		}
	case *types.TypeParam:
		return name(t.Obj())
	}
	return ""
}

// zero is the zero value of a type as it can be written at a position; empty if it cannot.
func (s *source) zero(t types.Type, at token.Pos) string {
	if p, isParam := types.Unalias(t).(*types.TypeParam); isParam {
		if text := s.typeText(p, at); text != "" {
			return "*new(" + text + ")"
		}
		return ""
	}
	switch under := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case under.Info()&types.IsBoolean != 0:
			return "false"
		case under.Info()&types.IsNumeric != 0:
			return "0"
		case under.Info()&types.IsString != 0:
			return `""`
		}
		return "nil"
	case *types.Struct, *types.Array:
		if text := s.typeText(t, at); text != "" {
			return text + "{}"
		}
		return ""
	}
	return "nil"
}
