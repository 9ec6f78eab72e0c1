package book

import (
	"cmp"
	"math/big"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// Prospect is when a Run that waits is going to start, and whether one that runs is going to grow.
type Prospect struct {
	// Promise is nil for a Run that has no date, and Refusal why it does not start now.
	Promise *forecast.Promise
	Refusal *plan.Refusal
	// Activation is what is to be published; nil when nothing is.
	Activation *Activation
	// Reservation is the Run's as the API was last seen to have it; nil when there is none that has not ended.
	Reservation *rqv1.Reservation
	// Brake says why nobody is cut for the Run although its date may have come, and CalledOff by which word its activation is not to
	// go on; nil when it is (R36).
	Brake     string
	CalledOff *brake.Word
	// Leaving is how many pods of others are still to end before the Run starts.
	Leaving int
	// Stuck are the pods that were to make room for the Run and should be long gone: it is planned around them (R37).
	Stuck []Stuck
	// GrowTo is the width in GPUs that the Run, which has started, is to grow to now; 0 when it is not to (R23).
	GrowTo int32
	// Narrower is the width in GPUs at which a running Run that has lost ranks could go on without more room; 0 when there
	// is none (R27).
	Narrower int32
	// Shards is how many pods an opportunistic Run may have; 0 for any other Run.
	Shards int
	// Lost are the ranks of a running Run that have no place because the node of the last one that they had was lost.
	Lost []int
	// RoomLapsed says that a requeued Run no longer keeps its room, and its status says that it does (R22).
	RoomLapsed bool
}

// prospectOf returns when a Run is going to start, or whether it is going to grow.
func (b *Book) prospectOf(g *gang) Prospect {
	return Prospect{Promise: g.promise, Refusal: g.refusal, Activation: g.activation, Reservation: g.reservation, Leaving: g.awaiting, Stuck: g.stuck,
		Brake: b.brakeOn(g), CalledOff: b.word(g), GrowTo: g.growth.to, Narrower: int32(g.narrower * g.full.GPUsPerPod), RoomLapsed: g.requeue.lapsed,
		Shards: g.allowedShards(), Lost: b.lostRanks(g)}
}

// risksOf returns the Reservations whose activation may cut a Run, by date and name (R18).
func (b *Book) risksOf(run types.NamespacedName) []rqv1.RunRisk {
	var out []rqv1.RunRisk
	for g := range b.threats[run] {
		if g.promise == nil || g.reservation == nil {
			continue // it is told when the Reservation is there
		}
		if odds := chance(g.promise.Conflicts, rqv1.NamespacedName{Namespace: run.Namespace, Name: run.Name}); odds != "0" {
			out = append(out, rqv1.RunRisk{Reservation: keyOf(g.reservation).String(), At: metav1.NewTime(g.promise.At), Probability: odds})
		}
	}
	slices.SortFunc(out, func(x, y rqv1.RunRisk) int {
		return cmp.Or(x.At.Compare(y.At.Time), cmp.Compare(x.Reservation, y.Reservation))
	})
	return out
}

// chance returns the probability that a Run is cut: it is shrunk or ended, which exclude each other, or loses spares.
func chance(conflicts []rqv1.Conflict, run rqv1.NamespacedName) string {
	cut, spares := new(big.Rat), new(big.Rat)
	for i := range conflicts {
		if conflicts[i].Run != run {
			continue
		}
		p, ok := new(big.Rat).SetString(conflicts[i].Probability)
		switch {
		case !ok:
		case conflicts[i].Action == rqv1.CutDropSpare:
			spares = p
		default:
			cut.Add(cut, p)
		}
	}
	if one := big.NewRat(1, 1); cut.Cmp(one) > 0 {
		cut = one
	}
	if spares.Cmp(cut) > 0 {
		cut = spares
	}
	return resolver.Decimal(cut)
}
