package lifecycle

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Adoption is a pod that somebody else has made and that gets a rank in a Run, by labels and annotations.
type Adoption struct {
	Pod                 *corev1.Pod
	Labels, Annotations map[string]string
}

// part returns the part of the Run that the pod gets, or has.
func (a *Adoption) part() rank.Part {
	index, _ := strconv.Atoi(cmp.Or(a.Labels[rqv1.LabelIndex], a.Pod.Labels[rqv1.LabelIndex]))
	return rank.Part{Index: index}
}

// theirs reports whether somebody else makes the pods of the Run (R41).
func (f *facts) theirs() bool { return f.Run != nil && f.Run.Spec.Theirs() }

// adoptions returns which pods that others have made get which ranks, and which pods give theirs up, as they have ended
// and there is another for it. A pod that waits costs the Run nothing, so that all get theirs at once.
func adoptions(s *situation) (adopted []Adoption, released []*corev1.Pod) {
	f := s.facts
	ranks, _ := s.expected()
	var lacking, done []int
	goes := 0
	for index, pod := range ranks {
		switch {
		case pod != nil && (unfinished(pod) || f.leaseOf[pod.UID] != nil):
			if !active(pod) || s.cuts.doom(pod) {
				goes++
			}
		case pod != nil && pod.Status.Phase == corev1.PodSucceeded:
			done = append(done, index)
		case pod == nil && f.Completed[index]:
			done = append(done, index)
		default:
			lacking = append(lacking, index)
		}
	}
	offers := f.offers()
	given := assign(offers, lacking, f.Forgone)
	if len(done) > 0 {
		maps.Copy(given, assign(beside(offers, given, goes), done, nil))
	}
	m := makerFor(s)
	for _, index := range slices.Concat(lacking, done) {
		pod := given[index]
		switch {
		case pod == nil:
		case ranks[index] != nil:
			released = append(released, ranks[index]) // its rank is free once that is written
		default:
			a := Adoption{Pod: pod, Labels: m.labels(rank.Part{Index: index})}
			a.Labels[rqv1.LabelSource] = string(rqv1.SourcePods)
			if made, relieved := s.swaps.relief[index]; relieved {
				a.Annotations = map[string]string{rqv1.AnnotationReplaces: made.Annotation()}
			}
			adopted = append(adopted, a)
		}
	}
	for index, pod := range ranks {
		if made := s.swaps.relief[index]; made.Spare != "" && active(pod) && !bound(pod) && f.leaseOf[pod.UID] == nil {
			adopted = append(adopted, Adoption{Pod: pod, // it waits in vain, and nobody makes another that names its spare
				Annotations: map[string]string{rqv1.AnnotationReplaces: made.Annotation()}})
		}
	}
	return adopted, append(released, surplus(s)...)
}

// surplus returns the pods that a narrower Run has no ranks for and that hold nothing: each waits until it grows.
func surplus(s *situation) (out []*corev1.Pod) {
	if !s.narrowed() {
		return nil
	}
	for _, pod := range s.roster.beyond {
		if rank.Theirs(pod) && present(pod) && unfinished(pod) && !bound(pod) && s.facts.leaseOf[pod.UID] == nil {
			out = append(out, pod)
		}
	}
	return out
}

// offers are the pods that others have made for the Run and that have no rank, in order of their names.
func (f *facts) offers() []book.Offer {
	offers := slices.DeleteFunc(slices.Clone(f.Offers), func(o book.Offer) bool {
		return f.podOf[o.Pod.UID] != nil // it has its rank: whoever offers it has not seen that yet
	})
	slices.SortFunc(offers, func(a, b book.Offer) int { return cmp.Compare(a.Pod.Name, b.Pod.Name) })
	return offers
}

// beside returns the offers that are there beside those that are given, and those for ranks whose pods are going.
func beside(offers []book.Offer, given map[int]*corev1.Pod, going int) []book.Offer {
	taken := map[*corev1.Pod]bool{}
	for _, pod := range given {
		taken[pod] = true
	}
	return slices.DeleteFunc(offers, func(o book.Offer) bool {
		if taken[o.Pod] || o.Rank >= 0 || going == 0 {
			return taken[o.Pod]
		}
		going--
		return true
	})
}

// assign gives ranks, which are in order, to pods, which are too: first to those that are for one, then to those that
// are for any, which get those first whose places are not given up.
func assign(offers []book.Offer, ranks []int, forgone map[int]types.UID) map[int]*corev1.Pod {
	given, free := map[int]*corev1.Pod{}, slices.Clone(ranks)
	for _, o := range offers {
		if at, wanted := slices.BinarySearch(free, o.Rank); wanted {
			given[o.Rank], free = o.Pod, slices.Delete(free, at, at+1)
		}
	}
	for _, o := range offers {
		if o.Rank < 0 && len(free) > 0 {
			at := max(0, slices.IndexFunc(free, func(index int) bool {
				_, is := forgone[index]
				return !is
			}))
			given[free[at]] = o.Pod
			free = slices.Delete(free, at, at+1)
		}
	}
	return given
}

// leaveTheirs takes those pods out of what is to be deleted that others have made and that hold nothing: one that waits
// is theirs to delete, and one that has ended theirs to keep. Those whose Run is gone give their ranks up instead. One
// that has its Lease and was never bound goes as others do: its binding may yet come, and holds its GPUs until it is
// gone. All that go are told why, so that their controllers know that they are not to blame (R42).
func (f *facts) leaveTheirs(deletions []Deletion, gone bool) (left []Deletion, released []*corev1.Pod) {
	for _, d := range deletions {
		switch {
		case !rank.Theirs(d.Pod):
		case !bound(d.Pod) && f.leaseOf[d.Pod.UID] == nil || !unfinished(d.Pod):
			if gone || d.If == RunGone {
				released = append(released, d.Pod)
			}
			continue
		case d.Notice == nil && (present(d.Pod) || d.If == NodeLost):
			d.Tell = cmp.Or(d.Tell, "the scheduler ends the pod: another pod has its place in the Run, or the place is lost")
		}
		left = append(left, d)
	}
	if len(left) == 0 {
		f.Unended = "" // whoever was to go is gone
	}
	return left, released
}

// groupEnds returns how a group has ended whose pods others make; empty as long as it goes on.
func (f *facts) groupEnds(ranks []*corev1.Pod) rqv1.RunPhase {
	if !f.theirs() || f.GroupEnd == "" || slices.ContainsFunc(ranks, active) {
		return ""
	}
	return f.GroupEnd
}

// goesWithout reports whether a group starts without a rank for which others have made no pod for as long as places are
// kept (R40, R42): its last one has failed, or the rank, of a group whose pods come late, has completed and has none.
func (t *footing) goesWithout(index int, pod *corev1.Pod) bool {
	f := t.facts
	left := f.theirs() && hasFailed(pod) ||
		pod == nil && f.Completed[index] && f.Run.Spec.TheirsComeLate()
	return left && slices.ContainsFunc(t.roster.core(), func(pod *corev1.Pod) bool {
		return active(pod) && f.runs(pod) && f.Now.Sub(f.leaseOf[pod.UID].HeldSince()) > f.GangDeadline
	})
}

// startsWithout notes of a group that starts for which ranks nothing is kept, since their pods have failed for good.
func (s *situation) startsWithout() {
	f := s.facts
	if s.phase != rqv1.RunRunning || saysRunning(f.Run) || !f.theirs() {
		return
	}
	forgone := map[int]types.UID{}
	maps.Copy(forgone, f.Forgone)
	for index, pod := range s.roster.core() {
		if pod != nil && s.goesWithout(index, pod) {
			forgone[index] = pod.UID
		}
	}
	f.Forgone = forgone
}

// hasFailed reports whether a rank has a pod, and that has failed, on whatever node.
func hasFailed(pod *corev1.Pod) bool { return pod != nil && pod.Status.Phase == corev1.PodFailed }

// unmade returns how many pods others are still to make of a Run that waits for them, or is starting without (R40).
func (s *situation) unmade() (n int) {
	late := s.facts.Run.Spec.TheirsComeLate()
	if s.phase != rqv1.RunPending || !s.facts.theirs() || late == s.starting.IsZero() {
		return 0
	}
	for _, pod := range s.roster.core() {
		if pod == nil {
			n++
		}
	}
	return n
}

// saysUnmade reports whether the Run says that pods are still to be made.
func (s *situation) saysUnmade() bool { return s.unmade() > 0 && s.toldUnmade().Before(s.facts.Now) }

// forgone returns how many ranks a Run lacks for which nothing is kept any more, since others have not made pods for as
// long as it is, and how many of these have pods that came later.
func (s *situation) forgone() (ranks, late int) {
	for index, pod := range s.roster.core() {
		if s.facts.gaveUp(index) && s.facts.lacks(index, pod) {
			ranks++
			if active(pod) {
				late++
			}
		}
	}
	return ranks, late
}

// gaveUp reports whether nothing is kept for a rank any more.
func (f *facts) gaveUp(index int) bool {
	_, is := f.Forgone[index]
	return is
}

// setForgone says for which ranks of a running group nothing is kept any more.
func setForgone(next *rqv1.RunStatus, s *situation) {
	next.Forgone = nil
	if s.phase != rqv1.RunRunning || !s.facts.theirs() {
		return
	}
	for _, index := range slices.Sorted(maps.Keys(s.facts.Forgone)) {
		next.Forgone = append(next.Forgone, rqv1.RunForgone{Index: int32(index), Pod: s.facts.Forgone[index]})
	}
}

// unmadeRest is for how long a Run waits before it says that pods are still to be made: most are at once.
const unmadeRest = 10 * time.Second

// toldUnmade returns from when on a Run says that pods are still to be made.
func (s *situation) toldUnmade() time.Time {
	since := s.facts.Run.CreationTimestamp.Time
	if s.starting.After(since) {
		since = s.starting
	}
	return since.Add(unmadeRest)
}

// incomplete reports whether a Run that has not started lacks pods which others are to make.
func (o *Observed) incomplete() bool {
	if o.Shape != nil || !o.Run.Spec.Theirs() || o.Run.Spec.TheirsComeLate() {
		return false
	}
	ranks := map[int]bool{}
	for _, pod := range o.Pods {
		if run, part, ok := rank.Membership(pod); ok && run == o.Run.UID && !part.Spare && present(pod) {
			ranks[part.Index] = true
		}
	}
	return len(ranks) < o.Demand.Pods()
}
