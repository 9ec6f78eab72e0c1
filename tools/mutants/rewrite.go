package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed active/active.go
var active []byte

// activeDir is where the package of that file is for the compiler, below the checkout; nothing is there otherwise.
const activeDir = "pkg/mutant"

// insertion is text that goes into a file at an offset, in place of some bytes.
type insertion struct {
	at, length int
	text       string
	// closes says that it ends a piece of code: such come before what begins at the same place.
	closes bool
	// size is the piece's, in bytes.
	size  int
	layer layer
}

// compare orders insertions as they stand in the file: of pieces that begin together the outermost is first, of those
// that end together it is last.
func (i insertion) compare(j insertion) int {
	if i.at != j.at {
		return cmp.Compare(i.at, j.at)
	}
	if i.closes != j.closes {
		if i.closes {
			return -1
		}
		return 1
	}
	outermost := cmp.Or(cmp.Compare(j.size, i.size), cmp.Compare(i.layer, j.layer))
	if i.closes {
		return -outermost
	}
	return outermost
}

// apply returns a file's text with the edits made in it. Lines keep their numbers.
func (s *source) apply(module string, edits []edit) []byte {
	all := []insertion{{at: s.at(s.file.Name.End()), closes: true,
		text: "; import mutant_ \"" + module + "/" + activeDir + "\""}}
	with := func(text string, m *mutant) string { return strings.ReplaceAll(text, "%d", fmt.Sprint(m.ID)) }
	for _, e := range edits {
		one := insertion{at: e.from, text: with(e.before, e.mutant), size: e.to - e.from, layer: e.layer}
		if e.replace {
			one.length = e.to - e.from
			all = append(all, one)
			continue
		}
		all = append(all, one, insertion{at: e.to, text: with(e.after, e.mutant), size: e.to - e.from, layer: e.layer,
			closes: true})
	}
	slices.SortStableFunc(all, insertion.compare)
	var out bytes.Buffer
	done := 0
	for _, i := range all {
		out.Write(s.text[done:i.at])
		out.WriteString(i.text)
		done = i.at + i.length
	}
	out.Write(s.text[done:])
	return out.Bytes()
}

// overlay writes all files with their mutants below dir, and returns the path of what tells the compiler of them.
func overlay(root, dir, module string, sources []*source, edits map[*source][]edit) (string, error) {
	replace := map[string]string{}
	write := func(name string, text []byte) error {
		path := filepath.Join(dir, "source", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		replace[filepath.Join(root, name)] = path
		return os.WriteFile(path, text, 0o644)
	}
	if err := write(filepath.Join(activeDir, "active.go"), active); err != nil {
		return "", err
	}
	for _, s := range sources {
		if len(edits[s]) == 0 {
			continue
		}
		if err := write(s.name, s.apply(module, edits[s])); err != nil {
			return "", err
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, data, 0o644)
}
