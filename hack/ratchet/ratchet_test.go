package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tower measures the package in testdata with limits that it is above everywhere.
func tower(t *testing.T) (figures, []string) {
	t.Helper()
	old := maps.Clone(limits)
	t.Cleanup(func() { limits = old })
	for kind := range limits {
		limits[kind] = 0
	}
	l, err := readLayers("testdata/layers/tower.txt")
	if err != nil {
		t.Fatal(err)
	}
	p, err := parse("testdata/tower")
	if err != nil {
		t.Fatal(err)
	}
	found := figures{}
	up := p.measure(found, l)
	return found, up
}

func TestMeasure(t *testing.T) {
	found, up := tower(t)
	want := figures{
		"lines testdata/tower":          28, // without blank ones and comments
		"methods testdata/tower.thing":  3,  // one of them a function that could be
		"methods testdata/tower.cellar": 4,
		"methods testdata/tower.roof":   1,
		"fields testdata/tower.thing":   5, // the embedded one, and what is in it
		"fields testdata/tower.part":    1,
		"fields testdata/tower.roof":    1,
		"written-by testdata/tower":     2, // low and marks, by the cellar and the roof
		"up testdata/tower":             4,
		"predicates testdata/tower":     2,
		"node-tests testdata/tower":     1,
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	places := []string{
		"cellar.climbs (tower.go) of below calls roof.adds (tower.go) of above",
		"cellar.sees (tower.go) of below calls thing.isHigh (tower.go) of above",
		"cellar.uses (tower.go) of below uses thing.high of above",
		"cellar.writes (tower.go) of below uses thing.marks of above",
	}
	if diff := cmp.Diff(places, up); diff != "" {
		t.Error(diff)
	}
}

// Figures may fall, and then stay there; what is new starts within its limit.
func TestCompare(t *testing.T) {
	known := figures{"lines pkg/a": 3000, "up pkg/a": 7}
	for name, row := range map[string]struct {
		found figures
		says  string
	}{
		"the same":            {figures{"lines pkg/a": 3000, "up pkg/a": 7}, ""},
		"grown":               {figures{"lines pkg/a": 3001, "up pkg/a": 7}, "lines pkg/a has grown from 3000 to 3001"},
		"fallen":              {figures{"lines pkg/a": 3000, "up pkg/a": 6}, "up pkg/a has fallen from 7 to 6"},
		"fallen to its limit": {figures{"up pkg/a": 7}, "lines pkg/a has fallen from 3000 to 0"},
		"new and beyond limit": {figures{"lines pkg/a": 3000, "up pkg/a": 7, "methods pkg/a.b": 41},
			"methods pkg/a.b is 41, and 40 is allowed"},
	} {
		said := ""
		if err := compare(known, row.found); err != nil {
			said = err.Error()
		}
		if said == "" != (row.says == "") || !strings.Contains(said, row.says) {
			t.Errorf("%s: %q, want %q", name, said, row.says)
		}
	}
}

// What -update writes is what the next run reads.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "layers"), os.DirFS("testdata/layers")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(&out, dir, []string{"testdata/..."}, true, false); err == nil {
		err = run(&out, dir, []string{"./testdata/tower"}, false, false)
		if err != nil {
			t.Error(err)
		}
	} else {
		t.Error(err)
	}
	if diff := cmp.Diff("", out.String()); diff != "" {
		t.Error(diff)
	}
}
