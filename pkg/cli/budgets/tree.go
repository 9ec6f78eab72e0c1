package budgets

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// familyTree is the family of owners with what their envelopes hold. An owner with several parents stands under each.
type familyTree struct {
	parents  map[rqv1.Owner][]rqv1.Owner // of the owners that are shown, also such as are not
	children map[rqv1.Owner][]rqv1.Owner // sorted
	roots    []rqv1.Owner                // sorted
	usage    Usage
}

// newTree works out the family from all Budgets, and shows the owners of some.
func newTree(all, shown []rqv1.Budget, u Usage) *familyTree {
	accounts := budget.NewAccounts(budget.Rates{})
	for i := range all {
		accounts.SetBudget(&all[i])
	}
	t := &familyTree{parents: map[rqv1.Owner][]rqv1.Owner{}, children: map[rqv1.Owner][]rqv1.Owner{}, usage: u}
	// Parents without a Budget are shown when nothing is filtered out, so that siblings stand together.
	var add func(owner rqv1.Owner)
	add = func(owner rqv1.Owner) {
		if _, known := t.parents[owner]; known {
			return
		}
		t.parents[owner] = accounts.Parents(owner)
		if len(all) == len(shown) {
			for _, parent := range t.parents[owner] {
				add(parent)
			}
		}
	}
	for i := range shown {
		add(shown[i].Spec.Owner)
	}
	for owner, parents := range t.parents {
		root := true
		for _, parent := range parents {
			if _, known := t.parents[parent]; known {
				t.children[parent] = append(t.children[parent], owner)
				root = false
			}
		}
		if root {
			t.roots = append(t.roots, owner)
		}
	}
	slices.Sort(t.roots)
	for _, children := range t.children {
		slices.Sort(children)
	}
	return t
}

// treeLine is a line of the tree: text that is aligned up to the bar, and what follows.
type treeLine struct {
	prefix, name, flavor string
	of                   *envelopeUsage // that has a bar, or nil
}

// writeTree draws the tree and a legend, on a terminal of so many columns; 0 for any other output. Where they are few
// the bars are shorter, and what does not fit behind them is left to the table.
func writeTree(out io.Writer, t *familyTree, p view.Palette, columns int) error {
	d := &drawing{familyTree: t, Palette: p, drawn: map[rqv1.Owner]bool{}}
	for _, root := range t.roots {
		d.owner(root, "", "", "")
	}
	name, flavor := 0, 0
	for _, l := range d.lines {
		if l.of != nil {
			name = max(name, utf8.RuneCountInString(l.prefix+l.name))
			flavor = max(flavor, utf8.RuneCountInString(l.flavor))
		}
	}
	cells, left := room(columns, name+flavor+len("      []"))
	var text strings.Builder
	for _, l := range d.lines {
		if l.of == nil {
			fmt.Fprintf(&text, "%s%s\n", l.prefix, l.name)
			continue
		}
		fmt.Fprintf(&text, "%-*s  %-*s  %s  %s\n", name, l.prefix+l.name, flavor, l.flavor, drawBar(&p, l.of, cells),
			l.of.numbers(left))
	}
	fmt.Fprintf(&text, "\n%s\n", p.Legend(columns))
	_, err := io.WriteString(out, session.LocalTimes(text.String(), t.usage.At.Time))
	return err
}

// drawing collects the lines of a tree.
type drawing struct {
	*familyTree
	view.Palette
	drawn map[rqv1.Owner]bool
	lines []treeLine
}

// owner draws an owner, its envelopes and all that is below it: in full at its first place, by name at others.
func (d *drawing) owner(owner, under rqv1.Owner, branch, trunk string) {
	name := string(owner)
	others := slices.DeleteFunc(slices.Clone(d.parents[owner]), func(p rqv1.Owner) bool { return p == under })
	if len(others) > 0 {
		also := "under "
		if under != "" {
			also = "also under "
		}
		name += " (" + also + joinOwners(others)
		if d.drawn[owner] {
			name += ", shown above"
		}
		name += ")"
	}
	d.lines = append(d.lines, treeLine{prefix: branch, name: name})
	if d.drawn[owner] {
		return
	}
	d.drawn[owner] = true
	children := d.children[owner]
	inside := trunk + strings.Repeat(" ", 4)
	if len(children) > 0 {
		inside = trunk + d.Trunk
	}
	d.envelopes(owner, inside)
	for i, child := range children {
		if i < len(children)-1 {
			d.owner(child, owner, trunk+d.Branch, trunk+d.Trunk)
		} else {
			d.owner(child, owner, trunk+d.Last, trunk+"    ")
		}
	}
}

// envelopes draws what an owner's Budgets hold, and what is wrong with them.
func (d *drawing) envelopes(owner rqv1.Owner, prefix string) {
	count := 0
	for i := range d.usage.Envelopes {
		if e := &d.usage.Envelopes[i]; e.Owner == owner {
			count++
			d.lines = append(d.lines, treeLine{prefix, e.Budget + "/" + e.Envelope, e.Flavor, e})
		}
	}
	if count == 0 {
		d.lines = append(d.lines, treeLine{prefix: prefix, name: "has no Budget"})
	}
	for i := range d.usage.Conditions {
		if c := &d.usage.Conditions[i]; c.Owner == owner {
			d.lines = append(d.lines, treeLine{prefix: prefix, name: c.inWords()})
		}
	}
}

func joinOwners(owners []rqv1.Owner) string {
	words := make([]string, len(owners))
	for i, owner := range owners {
		words[i] = string(owner)
	}
	return strings.Join(words, ", ")
}
