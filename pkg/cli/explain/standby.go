package explain

import (
	"fmt"
	"slices"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// sparesHeld is nil for a Run that asks for no spares.
func sparesHeld(run *rqv1.Run, holds []holding) *spares {
	perGroup := run.GroupSpares()
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
