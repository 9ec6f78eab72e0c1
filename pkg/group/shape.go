package group

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Shape is how many ranks a group has, which are its pods with GPUs, and where the ranks of its parts begin.
type Shape struct {
	// Least is how many ranks the group starts with at least, and Ranks how many it has.
	Least, Ranks int
	// Late says that some of its pods are made only once others are bound, and First how many ranks have pods before; 0
	// where that is not known.
	Late  bool
	First int
	// Begun says that parts of the group have completed, and that others, which waited for that, have begun.
	Begun bool
	// parts are where the ranks begin of the parts of an object, in order; empty where there are none. Apart says that the
	// ranks of a copy of a part belong together more than those of several do.
	parts []part
	apart bool
	// within are the node labels of whose domains each copy of a part has one for itself, in order of the parts.
	within []string
	// whole says that it is the group as a whole that has one.
	whole bool
	// mixed says that pods of several parts ask for different numbers of GPUs; empty where they do not.
	mixed string
}

// part is a replicated part of an object.
type part struct {
	name        string
	first, size int // the first rank, and how many ranks each of the part's copies has
	copies      int
	led         bool // pods of a copy are made once its first is bound, for where that is
}

// ShapeOf returns the shape of a group, as far as it is known.
func ShapeOf(o *Observed) Shape {
	s, _ := shapeOf(o)
	return s
}

// Rank returns the rank that a pod has by what it says of itself; -1 where it may have any.
func (s *Shape) Rank(pod *corev1.Pod) int {
	m := Of(pod)
	if len(s.parts) == 0 {
		if m.Index >= s.Ranks {
			return -1
		}
		return m.Index
	}
	p := s.partOf(pod)
	switch {
	case p == nil:
		return -1
	case m.Index < 0 && p.size*p.copies == 1:
		return p.first // it has no index because there is no other
	case m.Index < 0, m.Index >= p.size, m.Part.Index >= p.copies:
		return -1
	}
	return p.first + m.Part.Index*p.size + m.Index
}

// Knows reports whether a pod is in a part that the group had when its shape was read, if it has parts.
func (s *Shape) Knows(pod *corev1.Pod) bool { return len(s.parts) == 0 || s.partOf(pod) != nil }

// partOf returns the part that a pod is in by what it says of itself; nil where none is of that name.
func (s *Shape) partOf(pod *corev1.Pod) *part {
	name := Of(pod).Part.Name
	i := slices.IndexFunc(s.parts, func(p part) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return &s.parts[i]
}

// slice returns how many ranks belong together, where all parts have as many of them; 0 where they have not, or there
// are none.
func (s *Shape) slice() int {
	if !s.apart || len(s.parts) == 0 {
		return 0
	}
	for _, p := range s.parts {
		if p.size != s.parts[0].size {
			return 0
		}
	}
	return s.parts[0].size
}

// uneven says which Jobs differ in how many pods they have where pods come once the first of their Job is bound: those
// are planned in groups of GPUs, which are all of one size. Empty where none do.
func (s *Shape) uneven(k Key) string {
	led := slices.IndexFunc(s.parts, func(p part) bool { return p.led && p.size > 1 })
	if led < 0 || s.slice() > 0 {
		return ""
	}
	is := s.parts[led]
	other := s.parts[slices.IndexFunc(s.parts, func(p part) bool { return p.size != is.size })]
	return fmt.Sprintf("%s asks for a domain of its own for Job %s, of %d pods with GPUs, and Job %s has %d: give all of "+
		"its Jobs as many, or leave annotation %s out", k, is.name, is.size, other.name, other.size, exclusiveTopology)
}

// shapeOf works out the shape of a group: by its object, by what its pods say, or else by the pods that there are. It
// says what is waited for where that is not known yet.
func shapeOf(o *Observed) (s Shape, waits string) {
	members := membersOf(o)
	with := 0
	for _, m := range members {
		if m.gpus > 0 {
			with++
		}
	}
	if by := shapes[kindOf{o.Key.API, o.Key.Kind}]; by != nil && o.Object != nil {
		s = by(o)
	}
	switch size := sizeOf(members); {
	case len(s.parts) > 0:
	case s.Least > 0: // the object counts pods, whatever they ask for
		if waits := missing(s.Least, len(members)); waits != "" {
			return Shape{Least: s.Least, Ranks: s.Least}, waits
		}
		s.Least = max(1, with-max(0, len(members)-s.Least))
		s.Ranks = max(s.Least, with)
	case size > 0 && members[0].Late && leadsWithGPUs(members):
		s = led(o, members, size)
	case size > 0 && members[0].Late:
		s.Least, s.Ranks = size-1, size-1
	case size > 0:
		if waits := missing(size, len(members)); waits != "" {
			return Shape{Least: size, Ranks: size}, waits
		}
		s.Least, s.Ranks = with, with
	default:
		s.Least, s.Ranks = with, with
	}
	if label := exclusiveOf(o, members); label != "" {
		s.within, s.whole = []string{label}, true
	}
	return s, ""
}

// exclusiveOf returns the node label of whose domains a group of a LeaderWorkerSet is to have one for itself; empty
// where it is not. Its controller writes it on the pods, of which there are none yet where one is only planned.
func exclusiveOf(o *Observed, members []member) string {
	if o.Key.Kind != kindLeaderWorkerSet || len(members) == 0 {
		return ""
	}
	above, _, _ := unstructured.NestedString(o.Object, "metadata", "annotations", exclusiveGroup)
	return cmp.Or(members[0].pod.Annotations[exclusiveGroup], above)
}

func missing(size, there int) string {
	if there >= size {
		return ""
	}
	return fmt.Sprintf("waiting for %d more of the group's %d pods to be created", size-there, size)
}

// leadsWithGPUs reports whether the first pod of a group that is made pod by pod asks for GPUs: the others may not be
// there yet.
func leadsWithGPUs(members []member) bool {
	for _, m := range members {
		if m.Index == 0 {
			return m.gpus > 0
		}
	}
	return true
}

// led is the shape of a group that is made pod by pod and whose first pod asks for GPUs: the others may not be there
// yet, and its object says what they are to ask for, where that may be read.
func led(o *Observed, members []member, size int) Shape {
	s := Shape{Least: size, Ranks: size}
	template, says, _ := unstructured.NestedMap(o.Object, "spec", "leaderWorkerTemplate", "workerTemplate")
	first := slices.IndexFunc(members, func(m member) bool { return m.Index == 0 })
	pod := &corev1.Pod{}
	if first < 0 || !says || runtime.DefaultUnstructuredConverter.FromUnstructured(template, pod) != nil {
		return s
	}
	switch leads, works := members[first].gpus, o.GPUs(&pod.Spec); {
	case works == 0:
		return Shape{Least: 1, Ranks: 1}
	case works != leads:
		s.mixed = fmt.Sprintf("asks for %d GPUs for its leader and for %d for each of its workers", leads, works)
	}
	return s
}

// member is a pod with what it says.
type member struct {
	Member
	pod  *corev1.Pod
	gpus int
}

// membersOf returns the pods that count: all that have not failed, or gone, those first that ask for GPUs, in the order
// of what they say and of their names.
func membersOf(o *Observed) []member {
	var out []member
	for _, pod := range o.Pods {
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed {
			out = append(out, member{Of(pod), pod, o.GPUs(&pod.Spec)})
		}
	}
	slices.SortFunc(out, func(a, b member) int {
		return cmp.Or(cmp.Compare(min(b.gpus, 1), min(a.gpus, 1)),
			cmp.Compare(a.Part.Name, b.Part.Name), cmp.Compare(a.Part.Index, b.Part.Index),
			cmp.Compare(a.Index, b.Index), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	return out
}

// sizeOf returns how many pods a group has by what its pods say: the most, should they differ; 0 where none says it.
func sizeOf(members []member) (size int) {
	for _, m := range members {
		size = max(size, m.Size)
	}
	return size
}
