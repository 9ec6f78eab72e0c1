package budget

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// family is the graph of owners: who is whose parent (R1, R2). It is worked out anew when a Budget changes.
type family struct {
	parents  map[rqv1.Owner][]rqv1.Owner // sorted; only of owners that a Budget names
	children map[rqv1.Owner][]rqv1.Owner // sorted
	budgets  map[rqv1.Owner][]string     // names of the owner's Budgets
	circular map[rqv1.Owner][]rqv1.Owner // owners in a circle of parents, with all that are in it
	kin      map[rqv1.Owner][]step
	// strangers is how many owners without a Budget are in kin.
	strangers int
}

// mostStrangers bounds what is remembered of owners without a Budget.
const mostStrangers = 1000

// step is one step of the order in which envelopes pay: owners that come together.
type step struct {
	relation rqv1.Relation
	owners   []rqv1.Owner // sorted
}

// newFamily builds the graph. The parents of an owner are those that any of its Budgets names; by default the nearest
// ancestor in the colon path that has a Budget.
func newFamily(budgets map[string]*rqv1.Budget) *family {
	f := &family{
		parents: map[rqv1.Owner][]rqv1.Owner{}, children: map[rqv1.Owner][]rqv1.Owner{}, budgets: map[rqv1.Owner][]string{},
		circular: map[rqv1.Owner][]rqv1.Owner{}, kin: map[rqv1.Owner][]step{},
	}
	named := map[rqv1.Owner]bool{}
	for name, b := range budgets {
		f.budgets[b.Spec.Owner] = append(f.budgets[b.Spec.Owner], name)
		named[b.Spec.Owner] = true
		f.parents[b.Spec.Owner] = append(f.parents[b.Spec.Owner], b.Spec.Parents...)
		for _, parent := range b.Spec.Parents {
			named[parent] = true
		}
	}
	for owner := range named {
		f.parents[owner] = f.parentsOf(owner)
	}
	f.breakCircles()
	for owner, parents := range f.parents {
		for _, parent := range parents {
			f.children[parent] = append(f.children[parent], owner)
		}
	}
	for parent := range f.children {
		slices.Sort(f.children[parent])
	}
	return f
}

// parentsOf returns an owner's parents, also of one without a Budget: the nearest ancestor by name, if it has none of
// its own.
func (f *family) parentsOf(owner rqv1.Owner) []rqv1.Owner {
	if explicit := f.parents[owner]; len(explicit) > 0 {
		explicit = slices.Clone(explicit)
		slices.Sort(explicit)
		return slices.Compact(explicit)
	}
	if _, known := f.circular[owner]; known {
		return nil
	}
	for path := string(owner); ; {
		i := strings.LastIndexByte(path, ':')
		if i < 0 {
			return nil
		}
		path = path[:i]
		if len(f.budgets[rqv1.Owner(path)]) > 0 {
			return []rqv1.Owner{rqv1.Owner(path)}
		}
	}
}

// breakCircles drops the parents by which owners are their own ancestors, and remembers whom that concerns.
func (f *family) breakCircles() {
	above := map[rqv1.Owner]map[rqv1.Owner]bool{}
	for owner := range f.parents {
		seen := map[rqv1.Owner]bool{}
		f.climb(owner, seen)
		above[owner] = seen
	}
	cut := map[rqv1.Owner][]rqv1.Owner{}
	for owner, parents := range f.parents {
		if !above[owner][owner] {
			continue
		}
		cut[owner] = slices.DeleteFunc(slices.Clone(parents),
			func(p rqv1.Owner) bool { return p == owner || above[p][owner] })
		circle := slices.DeleteFunc(slices.Sorted(maps.Keys(above[owner])),
			func(o rqv1.Owner) bool { return !above[o][owner] })
		f.circular[owner] = circle
	}
	for owner, parents := range cut {
		f.parents[owner] = parents
	}
}

// climb notes all ancestors of an owner.
func (f *family) climb(owner rqv1.Owner, seen map[rqv1.Owner]bool) {
	for _, parent := range f.parents[owner] {
		if !seen[parent] {
			seen[parent] = true
			f.climb(parent, seen)
		}
	}
}

// steps returns the family of an owner in the order in which its envelopes pay: the owner itself, its siblings, its
// ancestors nearest first (R2). An ancestor that shares a parent with the owner counts as an ancestor.
func (f *family) steps(owner rqv1.Owner) []step {
	if known, ok := f.kin[owner]; ok {
		return known
	}
	seen := map[rqv1.Owner]bool{owner: true}
	steps := []step{{rqv1.RelationOwn, []rqv1.Owner{owner}}}
	take := func(relation rqv1.Relation, owners []rqv1.Owner) {
		var fresh []rqv1.Owner
		for _, o := range owners {
			if !seen[o] {
				seen[o] = true
				fresh = append(fresh, o)
			}
		}
		if len(fresh) > 0 {
			slices.Sort(fresh)
			steps = append(steps, step{relation, fresh})
		}
	}
	parents := f.parentsOf(owner)
	above := map[rqv1.Owner]bool{}
	for _, parent := range parents {
		above[parent] = true
		f.climb(parent, above)
	}
	var siblings []rqv1.Owner
	for _, parent := range parents {
		for _, child := range f.children[parent] {
			if !above[child] {
				siblings = append(siblings, child)
			}
		}
	}
	take(rqv1.RelationSibling, siblings)
	climbed := map[rqv1.Owner]bool{}
	for level := parents; len(level) > 0; {
		take(rqv1.RelationAncestor, level)
		var next []rqv1.Owner
		for _, o := range level {
			if !climbed[o] {
				climbed[o] = true
				next = append(next, f.parentsOf(o)...)
			}
		}
		level = next
	}
	if len(f.budgets[owner]) == 0 { // owners without a Budget are anybody's to name: not all of them are remembered
		f.strangers++
		if f.strangers > mostStrangers {
			maps.DeleteFunc(f.kin, func(o rqv1.Owner, _ []step) bool { return len(f.budgets[o]) == 0 })
			f.strangers = 1
		}
	}
	f.kin[owner] = steps
	return steps
}

// relation returns what a payer is to an owner within the family; false if it is not in it.
func (f *family) relation(owner, payer rqv1.Owner) (rqv1.Relation, bool) {
	for _, s := range f.steps(owner) {
		if _, found := slices.BinarySearch(s.owners, payer); found {
			return s.relation, true
		}
	}
	return "", false
}

// Admits reports whether a list of ACL entries admits a borrower: an exact owner, a prefix that ends in `*`, or `*` for
// everybody (R4).
func Admits(entries []rqv1.ACLEntry, borrower rqv1.Owner) bool {
	return slices.ContainsFunc(entries, func(entry rqv1.ACLEntry) bool {
		if prefix, ok := strings.CutSuffix(string(entry), "*"); ok {
			return strings.HasPrefix(string(borrower), prefix)
		}
		return string(entry) == string(borrower)
	})
}

// payerOrder sorts envelopes within one step: earliest end first, then by Budget and envelope name (R2).
func payerOrder(x, y envelope) int {
	return cmp.Or(compareEnd(x.Envelope, y.Envelope), strings.Compare(x.key.Budget, y.key.Budget),
		strings.Compare(x.key.Envelope, y.key.Envelope))
}

func compareEnd(x, y *rqv1.Envelope) int {
	switch {
	case x.End == nil && y.End == nil:
		return 0
	case x.End == nil:
		return 1
	case y.End == nil:
		return -1
	}
	return x.End.Compare(y.End.Time)
}

// server returns a function that says whether an envelope may pay for an owner at all (R2, R4).
func (f *family) server(e envelope) func(rqv1.Owner) bool {
	served := map[rqv1.Owner]bool{}
	return func(owner rqv1.Owner) bool {
		serves, asked := served[owner]
		if !asked {
			serves = f.serves(e, owner)
			served[owner] = serves
		}
		return serves
	}
}

// serves reports whether an envelope may pay for an owner at all (R2, R4).
func (f *family) serves(e envelope, owner rqv1.Owner) bool {
	relation, family := f.relation(owner, e.owner)
	if family && (relation == rqv1.RelationOwn || e.Sharing != rqv1.SharingNone) {
		return true
	}
	return e.Lending != nil && e.Lending.Allow && Admits(e.Lending.To, owner)
}
