package texts

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	root   = "../.."
	golden = "testdata/texts.golden"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// TestTexts holds what people can read against the file in which it can be read as one text. The file changes with
// each text, so that whoever reviews a change sees what people will read.
func TestTexts(t *testing.T) {
	var got strings.Builder
	got.WriteString("What people read: messages as the code has them (%s), {what it adds to them}, and single words.\n" +
		"After a change: go test ./test/texts -update\n")
	dirs := packages(t)
	for _, about := range concerns {
		got.WriteString("\n# " + about.title + "\n")
		for _, pattern := range about.packages {
			for _, dir := range dirs {
				if matches(pattern, dir) && !slices.Contains(mute, dir) {
					got.WriteString(must(goPackage(root, dir))(t))
				}
			}
		}
	}
	got.WriteString("\n# What the API server says\n")
	for _, dir := range []string{"manifests/crd", "manifests/policy"} {
		got.WriteString(must(yamlMessages(root, dir))(t))
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := must(os.ReadFile(golden))(t)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("%s is out of date; run go test ./test/texts -update, and read what changed (-want +got):\n%s", golden,
			diff)
	}
}

// TestConcerns finds packages whose texts nobody would read since no concern has them.
func TestConcerns(t *testing.T) {
	for _, dir := range packages(t) {
		known := slices.Contains(mute, dir)
		for _, about := range concerns {
			known = known || slices.ContainsFunc(about.packages, func(pattern string) bool { return matches(pattern, dir) })
		}
		if !known && must(goPackage(root, dir))(t) != "" {
			t.Errorf("%s has texts: add it to a concern in concerns.go, or to mute if they are for nobody", dir)
		}
	}
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// packages returns the directories of what is built, from the root.
func packages(t *testing.T) []string {
	t.Helper()
	var dirs []string
	for _, top := range []string{"cmd", "pkg"} {
		if err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() != "testdata" {
				dirs = append(dirs, filepath.ToSlash(strings.TrimPrefix(path, root+"/")))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return dirs
}

func matches(pattern, dir string) bool {
	above, all := strings.CutSuffix(pattern, "/...")
	return dir == above || all && strings.HasPrefix(dir, above+"/")
}
