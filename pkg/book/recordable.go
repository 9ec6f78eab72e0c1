package book

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// recordable reports whether a Reservation can hold the record of an activation: the whole conflict set, without which
// nobody could draw again (R21), with the draws and the cuts. If not, nobody is cut, and the gang waits for another
// lead: those who could be cut may have become fewer by then.
func (a *agenda) recordable(g *gang, to *Activation, decided *resolver.Plan) bool {
	size := bytesOf(to, decided)
	if size <= a.mostBytes {
		return true
	}
	until := to.At.Add(a.args.ReservationLead.Duration)
	g.restraint = restraint{until: until, why: fmt.Sprintf("the record of its draw would have %d entries in %d bytes, "+
		"but a Reservation can hold %d, so nobody could check the draw: no Run is cut for it before %s",
		len(to.Conflicts), size, a.mostBytes, until.UTC().Format(time.RFC3339))}
	return false
}

// bytesOf returns how many bytes the parts of a Reservation take as JSON that grow with what an activation is about.
func bytesOf(a *Activation, decided *resolver.Plan) int {
	r := rqv1.Reservation{Status: rqv1.ReservationStatus{ConflictSet: a.Conflicts, Cuts: decided.Cuts,
		Lottery: &rqv1.Lottery{Draws: decided.Draws}}}
	if p := a.Promise; p != nil {
		r.Spec.PayingEnvelopes, r.Spec.IntendedSlice = p.Payers, &rqv1.IntendedSlice{Domain: p.Slice.Labels}
		for _, held := range p.Nodes {
			r.Spec.IntendedSlice.Nodes = append(r.Spec.IntendedSlice.Nodes, held.Node)
		}
		r.Status.Forecast = &rqv1.Forecast{Remedies: p.Remedies, Scope: p.Slice.Scope}
	}
	text, err := json.Marshal(&r)
	if err != nil {
		return math.MaxInt
	}
	return len(text)
}

// mostRecordBytes is how much of the 1.5 MiB that etcd takes of an object the record of an activation may have.
const mostRecordBytes = 1280 << 10
