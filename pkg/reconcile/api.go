package reconcile

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// API is the API server, as decisions are carried out on it. Writes of one kind come as a slice and may be made in
// any order, several at a time; one that was made before, or whose object is gone or has changed, is no error. What
// has been written the book knows when the call returns.
type API interface {
	Evidence
	// WriteStatus writes the status of the Run that was observed.
	WriteStatus(ctx context.Context, o *lifecycle.Observed, status *rqv1.RunStatus) error
	// WriteReservation returns the Reservation as it is stored then; nil for a cluster that keeps none.
	WriteReservation(ctx context.Context, write *lifecycle.Write) (*rqv1.Reservation, error)
	// DeletePods gives each pod its notice, if there is one, and deletes it with the grace period that the deletion
	// says.
	DeletePods(ctx context.Context, deletions []lifecycle.Deletion) error
	// ReadLease returns a Lease as it is stored; nil when there is none.
	ReadLease(ctx context.Context, name types.NamespacedName) (*rqv1.Lease, error)
	// OpenLease writes a Lease by which a pod goes on that had another, and returns what is stored under its name then:
	// that may have been written before, and be another. A refusal says that there is none.
	OpenLease(ctx context.Context, lease *rqv1.Lease) (*rqv1.Lease, error)
	// OutliveLeases writes until when Leases are open whose pods are gone, and has the book know also what is refused.
	OutliveLeases(ctx context.Context, leases []*rqv1.Lease) error
	// CloseLeases writes the status that the Leases have, and returns those that were open until then, also beside an
	// error.
	CloseLeases(ctx context.Context, leases []*rqv1.Lease) ([]*rqv1.Lease, error)
	// DeleteRun deletes the Run as it was observed, and no other: one that has been edited stays.
	DeleteRun(ctx context.Context, run *rqv1.Run) error
	// AdoptPods gives pods that others have made their ranks, by labels and annotations, and ReleasePods takes them from
	// others. A pod that is gone, or was made anew, is left alone.
	AdoptPods(ctx context.Context, adopted []lifecycle.Adoption) error
	ReleasePods(ctx context.Context, released []*corev1.Pod) error
	// TellPods tells pods of others why they wait. One that does not take it is no error.
	TellPods(ctx context.Context, words []lifecycle.Word) error
	// CreateService makes a Run's Service; a name that something else has is NameTaken.
	CreateService(ctx context.Context, service *corev1.Service) error
	// WriteGuard makes a Run's PodDisruptionBudget, or has it be like that, and DropGuard deletes it; unless something
	// else has the name.
	WriteGuard(ctx context.Context, guard *policyv1.PodDisruptionBudget) error
	DropGuard(ctx context.Context, guard *policyv1.PodDisruptionBudget) error
	// CreatePods stops at the first pod that is not taken: what is held against one pod of a gang is held against
	// all. A name that something else has is NameTaken.
	CreatePods(ctx context.Context, pods []*corev1.Pod) error
}

// Evidence is what the API server itself says: a cache that lacks an object proves nothing (I12).
type Evidence interface {
	// Ask answers questions in their order. What could not be found out is false, and in the error.
	Ask(ctx context.Context, questions []Question) ([]bool, error)
	// Alive returns the pods of a Run that hold GPUs, for some that no cache holds.
	Alive(ctx context.Context, run types.NamespacedName, unseen []types.UID) (map[types.UID]bool, error)
	// RankLeases returns the labels of all Leases, closed ones too, that some ranks of a Run have had, or its
	// namesakes'.
	RankLeases(ctx context.Context, run *rqv1.Run, ranks []string) ([]map[string]string, error)
}

// Question is about one thing that is to be so before pods are deleted, or Leases closed, for it.
type Question struct {
	If lifecycle.Evidence
	// Node is not to exist, or to be recorded as lost, or is to stand, where that is what it is about.
	Node string
	// Pod is not to be bound if the Run with the UID has made it.
	Pod types.NamespacedName
	// Run is not to exist with the UID.
	Run types.NamespacedName
	UID types.UID
	// Lease is not to be there and open.
	Lease types.NamespacedName
}
