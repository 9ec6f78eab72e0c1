// Command ratchet measures how entangled the code is and compares that with figures.txt beside it, which may only fall:
// what is within its limit is not in the file, what is above it stands there with its figure. It prints what has grown
// and fails; -update writes the file anew, for figures that fell.
//
//	hack/ratchet.sh [-update | -places]
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	update := flag.Bool("update", false, "write the figures that are")
	places := flag.Bool("places", false, "print each place that runs up, and compare nothing")
	flag.Parse()
	if err := run(os.Stdout, "hack/ratchet", flag.Args(), *update, *places); err != nil {
		fmt.Fprintln(os.Stderr, "ratchet:", err)
		os.Exit(1)
	}
}

// figures are what was measured and is above its limit, by name.
type figures map[string]int

// limits are the figures that need no entry, by the first word of a name.
var limits = map[string]int{
	"lines":      2500, // of code, in a package
	"methods":    40,   // of a type; functions whose first parameter it is count
	"fields":     20,   // of a struct, with those of the structs of the package that it embeds
	"written-by": 0,    // fields of a package with layers that two types or more write
	"up":         0,    // places where a function uses what belongs to a layer above its own
	"predicates": 45,   // methods of a package's data that answer yes or no
	"node-tests": 15,   // types func(string) bool that are written out in a package with layers
}

// run compares the packages that patterns name with dir/figures.txt; patterns are directories, or trees as dir/... .
func run(out io.Writer, dir string, patterns []string, update, places bool) error {
	roots, err := directories(patterns)
	if err != nil {
		return err
	}
	found := figures{}
	for _, root := range roots {
		layers, err := readLayers(filepath.Join(dir, "layers", filepath.Base(root)+".txt"))
		if err != nil {
			return err
		}
		p, err := parse(root)
		if err != nil {
			return err
		}
		up := p.measure(found, layers)
		for _, place := range up {
			if places {
				fmt.Fprintln(out, place)
			}
		}
	}
	if places {
		return nil
	}
	path := filepath.Join(dir, "figures.txt")
	if update {
		return os.WriteFile(path, found.text(), 0o644)
	}
	known, err := readFigures(path)
	if err != nil {
		return err
	}
	return compare(known, found)
}

// compare returns an error that names what has grown, and what has fallen without the file saying so: else it could
// grow again.
func compare(known, found figures) error {
	var wrong []string
	names := maps.Clone(known)
	maps.Copy(names, found)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := known[name], found[name]
		switch {
		case is > was && was == 0:
			limit, _, _ := strings.Cut(name, " ")
			wrong = append(wrong, fmt.Sprintf("%s is %d, and %d is allowed", name, is, limits[limit]))
		case is > was:
			wrong = append(wrong, fmt.Sprintf("%s has grown from %d to %d", name, was, is))
		case is < was:
			wrong = append(wrong, fmt.Sprintf("%s has fallen from %d to %d: write it down by hack/ratchet.sh -update",
				name, was, is))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("what is entangled may only get less:\n  %s", strings.Join(wrong, "\n  "))
	}
	return nil
}

// above notes a figure if it is above its limit.
func (f figures) above(kind, of string, n int) {
	if n > limits[kind] {
		f[kind+" "+of] = n
	}
}

func (f figures) text() []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(&b, "%s %d\n", name, f[name])
	}
	return b.Bytes()
}

func readFigures(path string) (figures, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := figures{}
	for line := range strings.Lines(string(data)) {
		at := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		if at < 0 {
			return nil, fmt.Errorf("%s: %q is no figure", path, line)
		}
		n, err := strconv.Atoi(strings.TrimSpace(line[at:]))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		f[line[:at]] = n
	}
	return f, nil
}

// directories returns those that patterns name and that hold Go files other than tests, sorted.
func directories(patterns []string) ([]string, error) {
	found := map[string]bool{}
	for _, pattern := range patterns {
		root, tree := strings.CutSuffix(filepath.Clean(pattern), "/...")
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && path != root && (d.Name() == "testdata" || !tree) {
				return filepath.SkipDir
			}
			if err == nil && written(path) {
				found[filepath.Dir(path)] = true
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// written reports whether a file is Go that people write and that is no test.
func written(path string) bool {
	name := filepath.Base(path)
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") &&
		!strings.HasPrefix(name, "zz_generated")
}
