package group

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Said is what an object says by annotations, such as Job/train.
type Said struct {
	By          string
	Annotations map[string]string
}

// params reads what is said of a group: by its pods, else the object that it is known by, else what that is made for,
// upward, else the namespace (R41). The first that says something of a kind counts.
type params struct {
	said     []Said
	problems []string
}

// paramsOf returns what is said of a group. Its pods stand for each other: what the first says counts, and one that
// says something else is a problem.
func paramsOf(o *Observed, members []member) *params {
	p := &params{}
	if len(members) > 0 {
		first := members[0].pod
		p.said = append(p.said, Said{"Pod/" + first.Name, first.Annotations})
		for _, m := range members[1:] {
			for _, key := range settled {
				if m.pod.Annotations[key] != first.Annotations[key] {
					p.problem(key, "Pod/"+m.pod.Name, m.pod.Annotations[key],
						fmt.Sprintf("and Pod/%s of the same group says %s: they must say the same", first.Name,
							shown(first.Annotations[key])))
					return p
				}
			}
		}
	}
	p.said = append(p.said, o.Above...)
	p.said = append(p.said, Said{"Namespace/" + o.Key.Namespace, o.Namespace})
	return p
}

// settled are the annotations on which the pods of a group agree.
var settled = []string{rqv1.AnnotationOwner, rqv1.AnnotationMaxDuration, rqv1.AnnotationCheckpoint,
	rqv1.AnnotationSpares, rqv1.AnnotationMinWidth, rqv1.AnnotationGPUType, rqv1.AnnotationGroupGPUs}

// get returns what is said first, and by whom; empty for nothing.
func (p *params) get(key string) (value, by string) {
	for i := range p.said {
		if value, ok := p.said[i].Annotations[key]; ok {
			return strings.TrimSpace(value), p.said[i].By
		}
	}
	return "", ""
}

func (p *params) problem(key, by, value, why string) {
	p.problems = append(p.problems, fmt.Sprintf("annotation %s of %s is %s, %s", key, by, shown(value), why))
}

// mostShown is how much is shown of what somebody has written: it may be as long as an object, and what is told of
// it is written on pods, and read.
const mostShown = 100

// shown is a text as people are shown what they have written, or the beginning of it.
func shown(text string) string {
	if len(text) <= mostShown {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q and so on", strings.ToValidUTF8(text[:mostShown], ""))
}

// owner returns who is to pay; empty where nobody is named, or not by a name.
func (p *params) owner(o *Observed, total int) rqv1.Owner {
	value, by := p.get(rqv1.AnnotationOwner)
	if value != "" && !rqv1.IsOwner(value) {
		p.problem(rqv1.AnnotationOwner, by, value,
			"which is not an owner: it must be a path of lower-case names joined by colons, such as org:ai:rai")
		return ""
	}
	if value == "" {
		p.problems = append(p.problems, fmt.Sprintf("no owner is named to pay for the %d GPUs of %s: add annotation %s to "+
			"%s, to its pods, or to namespace %s%s", total, o.Key, rqv1.AnnotationOwner, o.Key, o.Key.Namespace, unread(o)))
	}
	return rqv1.Owner(value)
}

// unread says what does not count since the scheduler may not read it, and what mends that; empty where it reads all.
func unread(o *Observed) string {
	if o.Unread == "" {
		return ""
	}
	return fmt.Sprintf("; what %s says does not count, since the scheduler may not read it: an administrator can add its "+
		"kind to a ClusterRole with label %s/group-reader: \"true\"", o.Unread, rqv1.GroupName)
}

// gpus returns a number of GPUs that is a multiple of what a pod has, from a least one on; 0 where nothing is said.
func (p *params) gpus(key string, perPod, least int) int32 {
	value, by := p.get(key)
	if value == "" {
		return 0
	}
	n, err := strconv.Atoi(value)
	switch {
	case err != nil || n < least || n > maxPods:
		p.problem(key, by, value, fmt.Sprintf("which is not a number of GPUs of %d or more", least))
	case perPod > 0 && n%perPod != 0:
		p.problem(key, by, value, fmt.Sprintf("which is not a multiple of the %d GPUs that each pod asks for", perPod))
	default:
		return int32(n)
	}
	return 0
}

// duration returns one of at least a second; nil where nothing is said.
func (p *params) duration(key string) *metav1.Duration {
	value, by := p.get(key)
	if value == "" {
		return nil
	}
	d, err := rqv1.ParseDuration(value)
	if err != nil || d < time.Second {
		p.problem(key, by, value, "which is not a duration of a second or more, such as 90m, 12h or 3d")
		return nil
	}
	return &metav1.Duration{Duration: d}
}

// gpuType returns the type of GPU: as is said, else as the pods' node selector or affinity says, else the only one that
// there is.
func (p *params) gpuType(o *Observed, members []member) string {
	value, by := p.get(rqv1.AnnotationGPUType)
	requires := ""
	if len(members) > 0 {
		requires = selected(&members[0].pod.Spec, o.FlavorLabel)
	}
	switch types := slices.Sorted(slices.Values(o.Types)); {
	case value != "" && slices.Contains(types, value), value != "" && len(types) == 0:
		return value
	case value != "":
		p.problem(rqv1.AnnotationGPUType, by, value, "and the fleet has "+named(types))
		return ""
	case requires != "":
		return o.FlavorOf(requires)
	case len(types) == 1:
		return types[0]
	default:
		p.problems = append(p.problems, fmt.Sprintf("no type of GPU is named, and the fleet has %s: add annotation %s to "+
			"%s, or node selector %s to its pods%s", named(types), rqv1.AnnotationGPUType, o.Key,
			o.FlavorLabel, unread(o)))
		return ""
	}
}

// selected returns the only value of a node label with which a pod may be on a node, by its node selector or by each of
// the terms of the affinity that it requires; empty where there is none, or several.
func selected(pod *corev1.PodSpec, label string) string {
	if value := pod.NodeSelector[label]; value != "" {
		return value
	}
	if pod.Affinity == nil || pod.Affinity.NodeAffinity == nil ||
		pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	only := ""
	for _, term := range pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		i := slices.IndexFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == label && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1
		})
		if i < 0 || only != "" && term.MatchExpressions[i].Values[0] != only {
			return ""
		}
		only = term.MatchExpressions[i].Values[0]
	}
	return only
}

// mostTypes is how many types of GPU are named to somebody who has to choose.
const mostTypes = 8

// named returns the types of GPU that a fleet has, in words.
func named(types []string) string {
	if more := len(types) - mostTypes; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(types[:mostTypes], ", "), more)
	}
	return cmp.Or(strings.Join(types, ", "), "none")
}
