package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// table says how many runs of each kind came out how, and then which tests failed how often.
func table(runs []*run) string {
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KIND\tRUNS\tGREEN\tRED\tSLOW MACHINE\tTOOK\tCPU\tLOAD BEFORE")
	for _, kind := range kinds {
		var of []*run
		count := map[verdict]int{}
		for _, r := range runs {
			if r.Kind == kind {
				of = append(of, r)
				count[r.verdict()]++
			}
		}
		if len(of) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", kind, len(of), count[isGreen], count[isRed], count[isSlow],
			spread(of, func(r *run) time.Duration { return r.wall().Round(time.Second) }),
			spread(of, func(r *run) time.Duration {
				return time.Duration(r.CPUSeconds * float64(time.Second)).Round(time.Second)
			}),
			spread(of, func(r *run) float64 { return r.Load }))
	}
	_ = w.Flush()
	if slices.ContainsFunc(runs, func(r *run) bool { return r.verdict() == isSlow }) {
		out.WriteString("A run on a slow machine, where patience was stretched, does not count as green.\n")
	}
	for _, t := range troubles(runs) {
		out.WriteString("\n" + t.text(len(runs)))
	}
	return out.String()
}

// spread is the least and the most of a figure.
func spread[T cmp.Ordered](runs []*run, figure func(*run) T) string {
	var all []T
	for _, r := range runs {
		all = append(all, figure(r))
	}
	if least, most := slices.Min(all), slices.Max(all); least != most {
		return fmt.Sprintf("%v to %v", least, most)
	}
	return fmt.Sprint(all[0])
}

// trouble is a test with all its failures.
type trouble struct {
	pkg, test string
	runs      []*run
	// lines are what it said in each of them.
	lines [][]string
}

// troubles are the tests that failed, the most frequent first.
func troubles(runs []*run) []*trouble {
	type key struct{ pkg, test string }
	found := map[key]*trouble{}
	for _, r := range runs {
		for _, f := range r.said.failures {
			k := key{f.pkg, f.test}
			if found[k] == nil {
				found[k] = &trouble{pkg: f.pkg, test: f.test}
			}
			found[k].runs, found[k].lines = append(found[k].runs, r), append(found[k].lines, f.lines)
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *trouble) int {
		return cmp.Or(cmp.Compare(len(b.runs), len(a.runs)), cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.test, b.test))
	})
}

// text says how often it failed, in which runs, and with what: the first line that is not the same each time.
func (t *trouble) text(of int) string {
	var b strings.Builder
	name := t.test
	if name == "" {
		name = "no test, but the whole package"
	}
	count, seeds := map[string]int{}, map[string][]string{}
	for _, r := range t.runs {
		count[r.Kind]++
		seeds[r.Kind] = append(seeds[r.Kind], fmt.Sprint(r.Seed))
	}
	fmt.Fprintf(&b, "%s (%s)\n  failed in %d of %d runs:", name, t.pkg, len(t.runs), of)
	for _, kind := range kinds {
		if count[kind] > 0 {
			fmt.Fprintf(&b, " %d %s (seed %s)", count[kind], kind, strings.Join(seeds[kind], ", "))
		}
	}
	b.WriteString("\n")
	at := differ(t.lines)
	if at > 0 {
		fmt.Fprintf(&b, "  %d× %s\n", len(t.runs), line(t.lines[0], 0))
	}
	variants := map[string][]string{}
	for _, lines := range t.lines {
		like := general(line(lines, at))
		variants[like] = append(variants[like], line(lines, at))
	}
	for _, like := range slices.SortedFunc(maps.Keys(variants), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(variants[b]), len(variants[a])), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(&b, "  %d× %s\n", len(variants[like]), variants[like][0])
	}
	return b.String()
}

// differ is the index of the first line that is not alike in all outputs; 0 if there is none.
func differ(outputs [][]string) int {
	longest := 0
	for _, lines := range outputs {
		longest = max(longest, len(lines))
	}
	for i := range longest {
		for _, lines := range outputs[1:] {
			if general(line(lines, i)) != general(line(outputs[0], i)) {
				return i
			}
		}
	}
	return 0
}

// line is a line of an output, or says that it has none.
func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(it says no more)"
}

// varies matches what is another one each time: numbers, times, and the random ends of names.
var varies = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+`)

// general is a line without that.
func general(line string) string { return varies.ReplaceAllString(line, "0") }
