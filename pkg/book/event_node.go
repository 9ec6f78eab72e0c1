package book

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
	"github.com/davidlangworthy/jobtree/pkg/outage"
)

// SetNode adds or replaces a node and wakes the gangs that wait for room of its flavor.
func (b *Book) SetNode(node *corev1.Node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	flavor, size := b.nodes.flavorOf(node), b.nodes.sizeOf(node)
	old := b.nodes.byName[node.Name]
	served := old != nil && b.nodes.serves(old)
	anew := old != nil && old.UID != node.UID
	if old != nil && !anew && b.nodes.sizeOf(old) == size &&
		maps.Equal(old.Labels, node.Labels) &&
		equality.Semantic.DeepEqual(old.Spec, node.Spec) &&
		equality.Semantic.DeepEqual(old.Status.Allocatable, node.Status.Allocatable) &&
		old.Annotations[rqv1.AnnotationLost] == node.Annotations[rqv1.AnnotationLost] &&
		old.Annotations[rqv1.AnnotationSuspect] == node.Annotations[rqv1.AnnotationSuspect] &&
		b.nodes.evident(old) == b.nodes.evident(node) && announcesAsBefore(old, node) {
		b.nodes.noteBeat(node) // a heartbeat: nothing that decisions read has changed
		return
	}
	if anew {
		delete(b.nodes.losing, node.Name)
	}
	_, was := b.nodes.lossOf(node.Name)
	stood, former := b.nodes.stands(node.Name), b.nodes.nodeFlavor(node.Name)
	told := old != nil && (!announcesAsBefore(old, node) || outage.Drains(old) != outage.Drains(node))
	b.nodes.forgetNode(node.Name)
	b.nodes.noteNode(node)
	b.waiting.admits.changed(node.Name)
	b.accounts.SetNode(node.Name, flavor, node.Labels)
	if _, lost := nodeloss.Recorded(node); lost {
		delete(b.nodes.losing, node.Name) // the record tells from now on
	}
	domain := b.fleet.DomainOf(node.Name)
	b.recount(former)
	b.recount(flavor)
	b.nodes.setInFleet(node)
	b.nodes.stray(node.Name, domain)
	b.waiting.wakeNodes(flavor)
	if former != flavor {
		b.waiting.wakeNodes(former)
		b.waiting.alter(former)
	}
	if alters(old, node) || served != b.nodes.serves(node) {
		b.waiting.alter(flavor)
	}
	if _, is := b.nodes.lossOf(node.Name); is != was || stood != b.nodes.stands(node.Name) || anew || told {
		b.places.reconcileOn(map[string]bool{node.Name: true})
	}
}

// RemoveNode forgets a node. What is held on it stays held until its pods and Leases are gone.
func (b *Book) RemoveNode(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	flavor := b.nodes.nodeFlavor(name)
	b.nodes.forgetNode(name)
	b.waiting.admits.changed(name)
	delete(b.nodes.losing, name)
	delete(b.nodes.strayed, name)
	delete(b.waiting.left, name)
	b.fleet.RemoveNode(name)
	b.recount(flavor)
	b.waiting.wakeNodes(flavor) // what those who wait for its flavor are told may be so no more
	b.waiting.alter(flavor)
	b.places.reconcileOn(map[string]bool{name: true})
}

// HoldBack says which nodes show signs of loss and are not taken for lost, since too many do at once (R25); all others
// are not held back any more. What is on them stays there, and nothing else comes.
func (b *Book) HoldBack(nodes map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if maps.Equal(nodes, b.nodes.heldBack) {
		return
	}
	changed := map[string]bool{}
	for name := range nodes {
		changed[name] = !b.nodes.heldBack[name]
	}
	for name := range b.nodes.heldBack {
		changed[name] = !nodes[name]
	}
	maps.DeleteFunc(changed, func(_ string, is bool) bool { return !is })
	b.nodes.heldBack = maps.Clone(nodes)
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if node := b.nodes.byName[name]; node != nil {
			b.nodes.setInFleet(node)
			b.waiting.wakeNodes(b.nodes.flavorOf(node))
			b.waiting.alter(b.nodes.flavorOf(node))
		}
	}
	b.places.reconcileOn(changed)
}

// SetLosing counts nodes as lost from now on, all at once, so that nobody is moved from one of them to another. The
// record on each of them is to follow, and has the Runs looked at. If it cannot be made, losing is false and they count
// as standing again.
func (b *Book) SetLosing(names []string, losing bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		b.nodes.losing[name] = losing
		if !losing {
			delete(b.nodes.losing, name)
		}
		if node := b.nodes.byName[name]; node != nil {
			b.nodes.setInFleet(node)
			b.waiting.wakeNodes(b.nodes.flavorOf(node))
		}
	}
}

// Recorded reports whether a node is recorded as lost, or is about to be.
func (b *Book) Recorded(name string) bool {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	_, lost := b.nodes.lossOf(name)
	return lost || b.nodes.losing[name]
}

// LostAt returns when a node was recorded as lost; zero when it is not, or the record does not say.
func (b *Book) LostAt(name string) time.Time {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	at, _ := b.nodes.lossOf(name)
	return at
}
