package texts

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A text has two words or more. A word that stands alone is a reason, a state or a heading.
var (
	isText = regexp.MustCompile(`[\p{L}\d%.,:;)}'"] +[\p{L}\d%(]`)
	isWord = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)
	// column matches what says in the heading of a column when it is shown.
	column = regexp.MustCompile(`^\+|(\?)?(~\d)?(…)?$`)
)

// said is what one file of Go says: texts in the order in which they stand, and words.
type said struct {
	texts []string
	words map[string]bool
}

// goFile returns what a file of Go says. Of commands' help only the first line counts, since docs/cli has the rest.
func goFile(path string) (said, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return said{}, err
	}
	s := said{words: map[string]bool{}}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.CallExpr:
			return !named(n.Fun, "panic", "MustCompile")
		case *ast.KeyValueExpr:
			return !named(n.Key, "Long", "Example")
		case *ast.BinaryExpr, *ast.BasicLit:
			text, literal := folded(files, n.(ast.Expr))
			if !literal {
				return true
			}
			s.add(text)
			return false
		}
		return true
	})
	return s, nil
}

func (s *said) add(text string) {
	heading := column.ReplaceAllString(strings.TrimSpace(text), "")
	switch text = strings.TrimSpace(text); {
	case isText.MatchString(text):
		s.texts = append(s.texts, strings.ReplaceAll(text, "\n", `\n`))
	case isWord.MatchString(heading):
		s.words[heading] = true
	}
}

// named tells whether an expression is, or ends in, one of some names.
func named(e ast.Expr, names ...string) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return slices.Contains(names, e.Name)
	case *ast.SelectorExpr:
		return slices.Contains(names, e.Sel.Name)
	}
	return false
}

// folded returns the text that is made by adding up, with what is no literal in braces, and whether any part is one.
func folded(files *token.FileSet, e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return folded(files, e.X)
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text, true
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			left, one := folded(files, e.X)
			right, other := folded(files, e.Y)
			return left + right, one || other
		}
	}
	var code strings.Builder
	_ = printer.Fprint(&code, files, e)
	return "{" + strings.Join(strings.Fields(code.String()), " ") + "}", false
}

// goPackage writes what the files of a directory say, tests apart; nothing where they say nothing.
func goPackage(root, dir string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	words := map[string]bool{}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "zz_generated") {
			continue
		}
		s, err := goFile(path)
		if err != nil {
			return "", err
		}
		maps.Copy(words, s.words)
		section(&out, "### "+name, s.texts)
	}
	section(&out, "### words", slices.Sorted(maps.Keys(words)))
	if out.Len() == 0 {
		return "", nil
	}
	return "\n## " + dir + "\n" + out.String(), nil
}

// yamlMessages writes the messages of a directory's YAML: of validation rules in the API, and of admission policies.
func yamlMessages(root, dir string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(root, dir, "*.yaml"))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		texts, err := messages(data)
		if err != nil {
			return "", err
		}
		section(&out, "### "+filepath.Base(path), texts)
	}
	return "\n## " + dir + "\n" + out.String(), nil
}

func section(out *strings.Builder, title string, lines []string) {
	if len(lines) > 0 {
		out.WriteString("\n" + title + "\n" + strings.Join(lines, "\n") + "\n")
	}
}
