// Package ranks finds the pods of a Run's ranks, and says which rank is meant when nobody says so.
package ranks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
	"github.com/davidlangworthy/jobtree/pkg/ending"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Set is a Run and the pods that its ranks have; spares are none of them.
type Set struct {
	Run  *rqv1.Run
	Pods map[int]*corev1.Pod
}

// Read reads the pods of a Run.
func Read(ctx context.Context, c client.Client, run *rqv1.Run) (*Set, error) {
	var list corev1.PodList
	err := c.List(ctx, &list, client.InNamespace(run.Namespace), client.MatchingLabels{rqv1.LabelRun: run.Name})
	if err != nil {
		return nil, err
	}
	s := &Set{Run: run, Pods: map[int]*corev1.Pod{}}
	for i := range list.Items {
		pod := &list.Items[i]
		of, part, is := rank.Membership(pod)
		if !is || of != run.UID || part.Spare {
			continue
		}
		if other := s.Pods[part.Index]; other == nil || other.CreationTimestamp.Before(&pod.CreationTimestamp) {
			s.Pods[part.Index] = pod // others' pods have names of their own: two may have a rank, one after the other
		}
	}
	return s, nil
}

// Ranks returns the ranks that have pods, in order.
func (s *Set) Ranks() []int { return slices.Sorted(maps.Keys(s.Pods)) }

// Meant returns the rank that is meant when nobody says which, with why: the one that a failed Run is to blame on, or
// else the lowest.
func (s *Set) Meant() (index int, why string) {
	if d := s.blamed(); d != nil {
		return int(d.Index), "which failed first: " + Words(d)
	}
	if ranks := s.Ranks(); len(ranks) > 0 {
		return ranks[0], ""
	}
	return 0, ""
}

// byProgram are the reasons of Runs that ended because a program did.
var byProgram = []string{"Failed", "RestartLimit", "ExitCode", "DiedOnEveryNode", ending.NotReady}

// blamed returns how the first rank ended of those with which a Run ended that has failed; nil for any other Run.
func (s *Set) blamed() *rqv1.RunDeath {
	finished := meta.FindStatusCondition(s.Run.Status.Conditions, rqv1.ConditionFinished)
	if s.Run.Status.Phase != rqv1.RunFailed || finished == nil || !slices.Contains(byProgram, finished.Reason) {
		return nil
	}
	var first *rqv1.RunDeath
	for i := range s.Run.Status.Deaths {
		if d := &s.Run.Status.Deaths[i]; d.Cause == rqv1.CauseProgram && (first == nil || before(d, first)) {
			first = d
		}
	}
	return first
}

// before reports whether a death comes before another: one of a later incident, and within it the one that is blamed.
func before(d, other *rqv1.RunDeath) bool {
	switch {
	case d.Incident != other.Incident:
		return d.Incident > other.Incident
	case d.First != other.First:
		return d.First
	}
	return d.At.Before(&other.At)
}

// LastDeath returns how a rank ended last, as the Run's status tells it; nil when it does not.
func (s *Set) LastDeath(index int) (last *rqv1.RunDeath) {
	for i := range s.Run.Status.Deaths {
		if d := &s.Run.Status.Deaths[i]; int(d.Index) == index && (last == nil || last.At.Before(&d.At)) {
			last = d
		}
	}
	return last
}

// Words tells of an end in a few words, which rule no terminal.
func Words(d *rqv1.RunDeath) string { return printers.EscapeTerminal(ending.Words(d)) }

// Pod returns the pod of a rank, or says in words why there is none.
func (s *Set) Pod(index int) (*corev1.Pod, error) {
	if pod := s.Pods[index]; pod != nil {
		return pod, nil
	}
	name, ranks := session.NameOf(s.Run), s.Ranks()
	if d := s.LastDeath(index); d != nil {
		return nil, session.Fail(session.ExitError, "rank %d of Run %s no longer has a pod, and its logs are gone "+
			"with it; at %s it ended on node %s: %s", index, name, view.At(d.At), d.Node, Words(d))
	}
	switch {
	case len(ranks) > 0 && !s.Run.Ended() && index > ranks[len(ranks)-1]:
		return nil, session.Fail(session.ExitError, "Run %s has no rank %d: it has %s", name, index, inWords(ranks))
	case s.Run.Ended():
		return nil, session.Fail(session.ExitError, "rank %d of Run %s no longer has a pod, and its logs are gone "+
			"with it: the Run is %s%s", index, name, view.PhaseOf(s.Run), others(ranks))
	case len(ranks) > 0:
		return nil, session.Fail(session.ExitError, "rank %d of Run %s has no pod at the moment: it is being replaced%s",
			index, name, others(ranks))
	}
	return nil, session.Fail(session.ExitError, "Run %s has no pods: it is %s: %s", name, view.PhaseOf(s.Run),
		printers.EscapeTerminal(s.Run.Status.Message))
}

// others names the ranks that do have pods.
func others(ranks []int) string {
	if len(ranks) == 0 {
		return ""
	}
	return "; it still has " + inWords(ranks)
}

// inWords names ranks, such as ranks 0 to 3, 7.
func inWords(ranks []int) string {
	var parts []string
	for i := 0; i < len(ranks); {
		last := i
		for last+1 < len(ranks) && ranks[last+1] == ranks[last]+1 {
			last++
		}
		part := fmt.Sprint(ranks[i])
		if last > i {
			part = fmt.Sprintf("%d to %d", ranks[i], ranks[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	if len(ranks) == 1 {
		return "rank " + parts[0]
	}
	return "ranks " + strings.Join(parts, ", ")
}
