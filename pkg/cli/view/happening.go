package view

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// What can befall a GPU lease. A rank has moved when its next GPU lease is opened for a swap.
const (
	hasOpened = "opened"
	hasClosed = "closed"
	hasMoved  = "moved"
)

// alike is what GPU leases have in common that are told of together.
type alike struct {
	// Verb is opened, closed or moved, Reason why, and After why the GPU leases were closed that moved ones follow.
	Verb     string             `json:"verb"`
	Reason   string             `json:"reason"`
	After    rqv1.ClosureReason `json:"after,omitempty"`
	Role     rqv1.LeaseRole     `json:"role"`
	Cohort   int32              `json:"cohort,omitempty"` // of those that opened in a growth
	Budget   string             `json:"budget"`
	Envelope string             `json:"envelope"`
	Payer    rqv1.Owner         `json:"payer"`
	Relation rqv1.Relation      `json:"relation,omitempty"`
}

// Happening is what befell one GPU lease of a Run, or several alike.
type Happening struct {
	What string      `json:"what"`
	Time metav1.Time `json:"time"` // of the first
	alike
	Leases int     `json:"leases"`
	GPUs   int32   `json:"gpus"`
	Groups []int32 `json:"groups"`
	// Indexes are those of the pods among those of their role; of active pods they are the ranks.
	Indexes []int32 `json:"indexes"`
	// Nodes are where the GPUs are, or were if closed; From is where those that moved were before.
	Nodes []string `json:"nodes"`
	From  []string `json:"from,omitempty"`
}

// happened is what befell one GPU lease as it is now: it has opened, or closed.
func happened(lease *rqv1.Lease) Happening {
	spec := &lease.Spec
	h := Happening{
		Time: TimeOf(lease),
		alike: alike{Verb: hasOpened, Reason: string(spec.Reason), Role: spec.Slice.Role,
			Budget: spec.Payer.Budget, Envelope: spec.PaidByEnvelope, Payer: spec.Payer.Owner, Relation: spec.Payer.Relation},
		Leases: 1, GPUs: lease.GPUs(), Groups: []int32{spec.GroupIndex}, Indexes: []int32{int32(lease.Index())},
	}
	for _, node := range spec.Slice.Nodes {
		h.Nodes = append(h.Nodes, node.Name)
	}
	if lease.Status.Closed {
		h.Verb, h.Reason = hasClosed, string(lease.Status.ClosureReason)
	} else if spec.Reason == rqv1.ReasonGrow {
		h.Cohort = spec.Cohort
	}
	return h
}

// join adds a happening to those that it is like.
func join(told []Happening, h Happening) []Happening {
	i := slices.IndexFunc(told, func(t Happening) bool { return t.alike == h.alike })
	if i < 0 {
		return append(told, h)
	}
	told[i].Leases += h.Leases
	told[i].GPUs += h.GPUs
	told[i].Groups = union(told[i].Groups, h.Groups)
	told[i].Indexes = union(told[i].Indexes, h.Indexes)
	told[i].Nodes = union(told[i].Nodes, h.Nodes)
	told[i].From = union(told[i].From, h.From)
	return told
}

// union adds what is missing.
func union[T comparable](all, more []T) []T {
	for _, one := range more {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}
