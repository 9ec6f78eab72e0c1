package docs

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPackagesTable holds the tables of packages in docs/architecture.md against the code: each package but those of
// one command has a row, and imports only packages below it.
func TestPackagesTable(t *testing.T) {
	root := checkout(t)
	_, tables, found := strings.Cut(read(t, "docs/architecture.md"), "\n## Packages\n")
	if !found {
		t.Fatal("docs/architecture.md has no tables of packages")
	}
	row := map[string]int{} // from above
	for i, match := range regexp.MustCompile("(?m)^\\| `((?:cmd|pkg)/[^`]*)` \\|").FindAllStringSubmatch(tables, -1) {
		row[match[1]] = i
	}
	for _, pattern := range []string{"cmd/*", "pkg/*", "pkg/apis/rq/*"} {
		dirs, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			name, err := filepath.Rel(root, dir)
			if err != nil {
				t.Fatal(err)
			}
			imports := importsOf(t, dir)
			if imports == nil {
				continue // a directory without a package
			}
			at, listed := row[name]
			if !listed {
				t.Errorf("docs/architecture.md has no row for %s", name)
			}
			for _, other := range imports {
				if below, listed := row[other]; listed && below < at {
					t.Errorf("%s imports %s, which stands above it in docs/architecture.md", name, other)
				}
			}
		}
	}
	for name := range row {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("docs/architecture.md has a row for %s, which does not exist", name)
		}
	}
}

// importsOf returns the packages of this module that a package imports, by their directories; nil where there is none.
func importsOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, "") // it is a package, whatever it imports
		for _, spec := range parsed.Imports {
			if _, name, ours := strings.Cut(strings.Trim(spec.Path.Value, `"`), "/jobtree/"); ours {
				out = append(out, name)
			}
		}
	}
	return out
}

// TestFilesAreThere looks for each Go file that the pages about the code name: from the root, from pkg or, where the
// name has no directory, in the book or anywhere below pkg.
func TestFilesAreThere(t *testing.T) {
	root := checkout(t)
	for _, page := range []string{"docs/architecture.md", "docs/internals.md"} {
		for _, match := range regexp.MustCompile("`([a-z0-9_/]+\\.go)`").FindAllStringSubmatch(read(t, page), -1) {
			found := false
			for _, place := range []string{"", "pkg", "pkg/book", "pkg/*"} {
				files, err := filepath.Glob(filepath.Join(root, place, match[1]))
				if err != nil {
					t.Fatal(err)
				}
				found = found || len(files) > 0
			}
			if !found {
				t.Errorf("%s names %s, which does not exist", page, match[1])
			}
		}
	}
}
