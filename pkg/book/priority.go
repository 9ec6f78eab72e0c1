package book

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// priorities are the values of the cluster's PriorityClasses, by name. They order the Runs of one owner (R44).
type priorities map[string]int32

// Priority is what a Run has by its PriorityClass.
type Priority struct {
	// Value is 0 for a Run that names no class.
	Value int32
	// Missing says that there is no class of the name that the Run gives.
	Missing bool
}

// of returns what a Run has.
func (p priorities) of(run *rqv1.Run) Priority {
	if run == nil || run.Spec.PriorityClassName == "" {
		return Priority{}
	}
	value, known := p[run.Spec.PriorityClassName]
	return Priority{Value: value, Missing: !known}
}

// yieldsTo reports whether a Run gives way to another: they have one owner, and the other a higher priority. One whose
// class is not there gives way to nobody: classes are changed by making them anew.
func (p priorities) yieldsTo(run, other *rqv1.Run) bool {
	return run.Spec.Owner == other.Spec.Owner && p.of(run).Value < p.of(other).Value && !p.of(run).Missing
}

// SetPriorityClass adds a PriorityClass, or changes its value.
func (b *Book) SetPriorityClass(name string, value int32) {
	b.mu.Lock()
	if old, known := b.roster.priorities[name]; known && old == value {
		b.mu.unlockUnchanged()
		return
	}
	defer b.mu.Unlock()
	b.roster.priorities[name] = value
	b.reprioritize(name)
}

// DropPriorityClass forgets a PriorityClass: the Runs that name it have priority 0.
func (b *Book) DropPriorityClass(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.roster.priorities, name)
	b.reprioritize(name)
}

// reprioritize has the Runs looked at that name a class which has changed.
func (b *Book) reprioritize(class string) {
	var named []types.NamespacedName
	for g := range b.roster.living {
		if g.run != nil && g.run.Spec.PriorityClassName == class {
			b.waiting.note(g)
			named = append(named, keyOf(g.run))
		}
	}
	slices.SortFunc(named, func(x, y types.NamespacedName) int { return strings.Compare(x.String(), y.String()) })
	for _, run := range named {
		b.mail.reconcile(run, lane.Date)
	}
}
