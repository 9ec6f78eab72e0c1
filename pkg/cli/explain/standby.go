package explain

import (
	"fmt"
	"slices"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// spares is what stands by for a Run that asks for spares, in GPUs. Wanted is what is to, at the width that the Run
// has.
type spares struct {
	GPUs   int32 `json:"gpus"`
	Wanted int32 `json:"wanted"`
	// ShortGroups hold GPUs and have fewer spares than they are to have.
	ShortGroups []int32 `json:"shortGroups,omitempty"`
}

// sparesHeld is nil for a Run that asks for no spares.
func sparesHeld(run *rqv1.Run, holds []holding) *spares {
	perGroup := run.Spec.GroupSpares()
	if perGroup == 0 {
		return nil
	}
	s := &spares{Wanted: view.SparesWanted(run)}
	byGroup := map[int32]int32{}
	for _, h := range holds {
		held := byGroup[h.Group]
		if h.Role == rqv1.RoleSpare {
			s.GPUs += h.GPUs
			held += h.GPUs
		}
		byGroup[h.Group] = held
	}
	for group, gpus := range byGroup {
		if gpus < perGroup {
			s.ShortGroups = append(s.ShortGroups, group)
		}
	}
	slices.Sort(s.ShortGroups)
	return s
}

func (s *spares) inWords() string {
	words := fmt.Sprintf("%d/%d GPUs stand by", s.GPUs, s.Wanted)
	if len(s.ShortGroups) > 0 {
		words += "; short in " + view.Numbered("group", s.ShortGroups)
	}
	return words
}

// shards is what an opportunistic Run is doing: how many shards run, and how many have ended for which reason.
type shards struct {
	Running    int       `json:"running"`
	GPUs       int32     `json:"gpus"`
	WantedGPUs int32     `json:"wantedGPUs"`
	Ended      []givenUp `json:"ended,omitempty"`
}

// shardsOf is nil for a Run that is not opportunistic.
func shardsOf(run *rqv1.Run, leases []rqv1.Lease) *shards {
	if !run.Spec.Opportunistic {
		return nil
	}
	s := &shards{WantedGPUs: run.Spec.Resources.TotalGPUs}
	if run.Status.Width != nil {
		s.WantedGPUs = run.Status.Width.Desired
	}
	for i := range leases {
		if lease := &leases[i]; lease.Status.Closed {
			s.Ended = addGivenUp(s.Ended, lease)
		} else {
			s.Running++
			s.GPUs += lease.GPUs()
		}
	}
	slices.SortFunc(s.Ended, func(a, b givenUp) int { return strings.Compare(string(a.Reason), string(b.Reason)) })
	return s
}

func (s *shards) inWords() string {
	words := fmt.Sprintf("%d running on %d/%d GPUs", s.Running, s.GPUs, s.WantedGPUs)
	var ended []string
	for _, e := range s.Ended {
		ended = append(ended, fmt.Sprintf("%d %s", e.Leases, e.Reason))
	}
	if len(ended) > 0 {
		words += "; ended: " + strings.Join(ended, ", ")
	}
	return words
}
