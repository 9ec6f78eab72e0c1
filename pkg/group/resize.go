package group

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Width is how wide a Run asks to be: what it starts with, and in what range that may change; nil where it may not.
type Width struct {
	TotalGPUs int32
	Malleable *rqv1.RunMalleable
	// Ranks is how many pods the group is to have; nil for one for each rank.
	Ranks *int32
}

// WidthOf returns how wide a Run asks to be as it is.
func WidthOf(spec *rqv1.RunSpec) Width {
	w := Width{TotalGPUs: spec.Resources.TotalGPUs, Malleable: spec.Malleable}
	if spec.Pods != nil {
		w.Ranks = spec.Pods.Ranks
	}
	return w
}

// Wider reports whether more GPUs are asked for than by a Run.
func (w *Width) Wider(run *rqv1.Run) bool {
	spec := rqv1.RunSpec{Resources: rqv1.RunResources{TotalGPUs: w.TotalGPUs}, Malleable: w.Malleable}
	return spec.Desired() > run.Spec.Desired()
}

// Resized returns how wide a Run is to be whose group has another number of pods than when it was read; nil where the
// Run says so already. One that runs keeps what it started with: more pods are growth, on loan beyond that (R23). Where
// the object says that there are fewer, the Run narrows as far as those are gone (R42). One that waits again, since it
// was cut, asks for as many as there are.
func Resized(run *rqv1.Run, o *Observed, members []*corev1.Pod) *Width {
	is := WidthOf(&run.Spec)
	var to *Width
	switch {
	case run.Spec.Resources.GPUsPerPod == nil:
	case !(Counts(o.Key) && o.Object != nil) && !grows(o, run.Status.Phase):
	case run.Status.Phase == rqv1.RunRunning:
		live := o.live() // others get the ranks of those that have ended
		live.failed = failedOf(members)
		s, has := ShapeOf(live), 0
		for _, m := range membersOf(live) {
			has += min(m.gpus, 1)
		}
		if s.Begun { // parts that have completed leave ranks, not a narrower Run
			s.Ranks = max(s.Ranks, int(run.Spec.Desired() / *run.Spec.Resources.GPUsPerPod))
		}
		// What is asked for and has no pods yet keeps no room from others.
		ranks := max(has, min(s.Ranks, int(run.Spec.Desired() / *run.Spec.Resources.GPUsPerPod)))
		all := len(s.parts) > 0 || o.Key.API == "" && sizeOf(membersOf(live)) > 0
		to = WidthFor(&run.Spec, min(s.Ranks, ranks), all, members)
	case run.Status.Phase == rqv1.RunPending:
		to = anew(run, o)
	}
	if to == nil && run.Status.Phase == rqv1.RunPending { // none of its ranks is one that the group is to be without
		to = &Width{TotalGPUs: is.TotalGPUs, Malleable: is.Malleable}
	}
	if to == nil || equality.Semantic.DeepEqual(is, *to) {
		return nil
	}
	return to
}

// anew returns how wide a Run is to be that waits again.
func anew(run *rqv1.Run, o *Observed) *Width {
	d, total := Derive(o), run.Spec.Resources.TotalGPUs
	if d.Spec != nil && d.Spec.Resources.TotalGPUs != total {
		wider := d.Spec.Resources.TotalGPUs > total
		d = DeriveNew(o)
		if wider && d.Spec != nil && d.Spec.Resources.TotalGPUs <= total {
			return nil // some had completed before it began
		}
	}
	if d.Spec != nil && equality.Semantic.DeepEqual(d.Spec.Locality, run.Spec.Locality) {
		return &Width{TotalGPUs: d.Spec.Resources.TotalGPUs, Malleable: d.Spec.Malleable}
	}
	return nil
}

// grows reports whether a group that its pods name follows how many of them there are: a controller makes them, such as
// a Deployment's, which makes the next before one goes. One that has been cut does so if they say how many there are to
// be.
func grows(o *Observed, phase rqv1.RunPhase) bool {
	members := membersOf(o)
	return o.Key.Kind == kindGroup && o.Key.API == "" && (phase == rqv1.RunRunning || sizeOf(members) > 0) &&
		!slices.ContainsFunc(members, func(m member) bool { return metav1.GetControllerOfNoCopy(m.pod) == nil })
}

// live returns a group with those of its pods that have not ended.
func (o *Observed) live() *Observed {
	out := *o
	out.Pods = slices.DeleteFunc(slices.Clone(o.Pods), rank.Ended)
	return &out
}

// Outgrown reports whether a Run, all of whose pods have completed, has no room for those that its group goes on with:
// they are a gang of their own, which is more, or is to be elsewhere.
func Outgrown(run *rqv1.Run, o *Observed) bool {
	if phase := run.Status.Phase; phase != rqv1.RunRunning && phase != rqv1.RunCompleted || !ShapeOf(o).Begun {
		return false
	}
	d := Derive(o)
	if d.Spec == nil {
		return d.Problem != ""
	}
	return d.Spec.Resources.TotalGPUs > run.Spec.Desired() ||
		!equality.Semantic.DeepEqual(d.Spec.Locality, run.Spec.Locality) ||
		!equality.Semantic.DeepEqual(d.Spec.Resources.GPUsPerPod, run.Spec.Resources.GPUsPerPod)
}

// Outnumbers reports whether a group has as many pods with GPUs as a Run is for, or more.
func Outnumbers(o *Observed, run *rqv1.Run) bool {
	gpus := 0
	for _, m := range membersOf(o) {
		gpus += m.gpus
	}
	return gpus >= int(run.Spec.Resources.TotalGPUs)
}

// WidthFor returns the width of a Run that runs and has some pods, by how many ranks its group is to have. Of which all
// may be meant, or those that are there: then some that are lost may come again, and the Run does not narrow. Nor does
// it while fewer are there than there are to be: one that is lost has its place meanwhile. Ranks are not renumbered, so
// that some may be left without pods below those of pods that stay.
func WidthFor(spec *rqv1.RunSpec, ranks int, all bool, members []*corev1.Pod) *Width {
	each, total := *spec.Resources.GPUsPerPod, spec.Resources.TotalGPUs
	m := rqv1.RunMalleable{MinTotalGPUs: total, MaxTotalGPUs: total, StepGPUs: each}
	if l := spec.Locality; l != nil && l.GroupGPUs != nil {
		m.StepGPUs = *l.GroupGPUs
	}
	if spec.Malleable != nil {
		m = *spec.Malleable
	}
	wants := int32(min(ranks, maxPods/int(each))) * each
	if !all {
		wants = max(wants, spec.Desired())
	}
	// Whole steps from what it started with: as many as there are to be pods, and as are needed for those that are left.
	needs := total + (wants-total)/m.StepGPUs*m.StepGPUs
	if needs < 1 {
		needs += m.StepGPUs
	}
	there, highest := heldBy(members)
	wide := needs
	if there*each < wants {
		wide = max(wide, spec.Desired())
	}
	for wide < (highest+1)*each {
		wide += m.StepGPUs
	}
	var has *int32
	if wants < wide {
		has = ptr.To(wants / each)
	}
	if wide == spec.Desired() && needs >= m.MinTotalGPUs {
		return &Width{total, spec.Malleable, has}
	}
	m.MinTotalGPUs, m.MaxTotalGPUs = min(m.MinTotalGPUs, needs), max(m.MaxTotalGPUs, wide)
	m.DesiredTotalGPUs = ptr.To(wide)
	return &Width{total, &m, has}
}

// failedOf returns how many ranks have pods that have failed.
func failedOf(members []*corev1.Pod) (n int32) {
	for _, pod := range members {
		if _, part, ok := rank.Membership(pod); ok && !part.Spare && pod.Status.Phase == corev1.PodFailed {
			n++
		}
	}
	return n
}

// heldBy returns how many ranks pods have that are there or have completed, and the highest rank of any pod; -1 where
// there is none.
func heldBy(members []*corev1.Pod) (there, highest int32) {
	ranks := map[int]bool{}
	highest = -1
	for _, pod := range members {
		_, part, ok := rank.Membership(pod)
		if !ok || part.Spare {
			continue
		}
		highest = max(highest, int32(part.Index))
		if pod.Status.Phase == corev1.PodSucceeded || pod.DeletionTimestamp == nil && !rank.Ended(pod) {
			ranks[part.Index] = true
		}
	}
	return int32(len(ranks)), highest
}

// Beyond says that a Run which runs has as many pods as there is room for, so that another pod of its group waits until
// it grows.
func Beyond(run *rqv1.Run) string {
	key, _ := KeyOf(run)
	what := map[rqv1.WidthLacks]string{"": "there is room and money for", rqv1.LacksMoney: "Budgets allow",
		rqv1.LacksGPUs: "there are GPUs for", rqv1.LacksNodes: "other scheduling rules accept"}[lacksIn(run)]
	return fmt.Sprintf("%s runs with as many pods as %s, %d GPUs: another pod starts when Run %s can grow, or gets the "+
		"place of one that is lost", key, what, grantedTo(run), run.Name)
}

func lacksIn(run *rqv1.Run) rqv1.WidthLacks {
	if w := run.Status.Width; w != nil {
		return w.Lacks
	}
	return ""
}

func grantedTo(run *rqv1.Run) int32 {
	if w := run.Status.Width; w != nil {
		return w.Granted
	}
	return 0
}
