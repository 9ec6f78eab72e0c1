// Blocks reads coverage profiles of one state of the code, and keeps which blocks of code each of them covers under
// names that last: the function, and the text of the block. So states of the code can be compared in which it stands
// elsewhere.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	root := flag.String("root", "../..", "the checkout")
	out := flag.String("o", "", "the file of the blocks, which is added to if it is there")
	before := flag.String("before", "", "the file of another state, to compare with")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "blocks -o FILE [-before FILE] NAME=PROFILE...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *out == "" {
		flag.Usage()
		os.Exit(2)
	}
	lost, err := do(*root, *out, *before, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || lost > 0 {
		os.Exit(1)
	}
}

// do adds profiles to a file of blocks, and compares it with another if there is one.
func do(root, out, before string, profiles []string) (lost int, err error) {
	blocks, err := load(out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	for _, argument := range profiles {
		name, path, _ := strings.Cut(argument, "=")
		data, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		if blocks, err = merge(blocks, root, name, string(data)); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
	}
	data, err := json.MarshalIndent(blocks, "", " ")
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(out, append(data, '\n'), 0o644); err != nil {
		return 0, err
	}
	fmt.Print(summary(blocks))
	if before == "" {
		return 0, nil
	}
	then, err := load(before)
	if err != nil {
		return 0, err
	}
	text, lost := compare(then, blocks)
	fmt.Print(text)
	return lost, nil
}

func load(path string) (blocks []*block, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return blocks, json.Unmarshal(data, &blocks)
}

// summary says how many of the blocks each profile covers.
func summary(blocks []*block) string {
	count := map[string]int{}
	any := 0
	for _, b := range blocks {
		for _, name := range b.By {
			count[name]++
		}
		if len(b.By) > 0 {
			any++
		}
	}
	text := fmt.Sprintf("%d blocks, %d covered", len(blocks), any)
	for _, name := range sortedKeys(count) {
		text += fmt.Sprintf(", %d by %s", count[name], name)
	}
	return text + "\n"
}

func sortedKeys(count map[string]int) (names []string) {
	for name := range count {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// compare names the blocks that something covered before, and nothing covers now; and how many of those that were
// covered are no more. The second result is how many are covered by nothing now.
func compare(then, now []*block) (text string, lost int) {
	here := map[string]*block{}
	for _, b := range now {
		here[b.key()] = b
	}
	var gone []*block
	var out strings.Builder
	for _, b := range then {
		if len(b.By) == 0 {
			continue
		}
		switch found := here[b.key()]; {
		case found == nil:
			gone = append(gone, b)
		case len(found.By) == 0:
			lost++
			fmt.Fprintf(&out, "%s:%d %s: covered before by %s, by nothing now: %s\n", found.File, found.Line, found.Function,
				strings.Join(b.By, " and "), shortened(found.Text))
		}
	}
	slices.SortFunc(gone, func(a, b *block) int { return cmp.Compare(a.key(), b.key()) })
	for _, b := range gone {
		fmt.Fprintf(&out, "%s %s: covered before, and the code is no more: %s\n", filepath.ToSlash(b.File), b.Function,
			shortened(b.Text))
	}
	fmt.Fprintf(&out, "%d blocks that were covered before are covered by nothing now, %d are no more\n", lost, len(gone))
	return out.String(), lost
}

// shortened is a text as it fits into a line.
func shortened(text string) string {
	const enough = 80
	if letters := []rune(text); len(letters) > enough {
		return string(letters[:enough]) + "…"
	}
	return text
}
