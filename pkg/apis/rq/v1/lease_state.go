package v1

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// PodUID returns the UID of the pod that a Lease is held by.
func (l *Lease) PodUID() types.UID { return types.UID(l.Labels[LabelPodUID]) }

// Index returns the rank of the pod that a Lease is held by, among its Run's active pods or among its spares. Every
// Lease has the label.
func (l *Lease) Index() int {
	index, _ := strconv.Atoi(l.Labels[LabelIndex])
	return index
}

// Node returns the node on which a Lease holds GPUs: a pod's are on one.
func (l *Lease) Node() string { return l.Spec.Slice.Nodes[0].Name }

// GPUs returns how many GPUs a Lease holds.
func (l *Lease) GPUs() int32 {
	n := int32(0)
	for _, held := range l.Spec.Slice.Nodes {
		n += held.GPUs
	}
	return n
}

// Relation returns what the payer of a Lease was to the Run's owner when it was opened. A Lease that does not say is of
// one who paid for his own, or of a sponsor.
func (l *Lease) Relation() Relation {
	switch {
	case l.Spec.Payer.Relation != "":
		return l.Spec.Payer.Relation
	case l.Spec.Payer.Owner == l.Spec.Owner:
		return RelationOwn
	}
	return RelationSponsor
}

// steps are the kinds of payers in the order in which they pay (R2).
var steps = []Relation{RelationOwn, RelationSibling, RelationAncestor, RelationSponsor}

// Step returns where in the order in which payers are asked one of a relation stands, from 0 for the owner's own
// envelopes (R2).
func (r Relation) Step() int { return slices.Index(steps, r) }

// Key returns the namespace and the name of the Lease.
func (l *Lease) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: l.Namespace, Name: l.Name}
}

// HeldSince returns the instant from which the pod has held the GPUs, also where others paid for it before.
func (l *Lease) HeldSince() time.Time {
	if l.Spec.Repaid != nil {
		return l.Spec.Repaid.HeldSince.Time
	}
	return l.Spec.Start.Time
}
