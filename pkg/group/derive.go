package group

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Rules are what the configuration says.
type Rules struct {
	// GPUs counts the GPUs that a pod asks for, and FlavorOf the type that a value of FlavorLabel means.
	GPUs        func(*corev1.PodSpec) int
	FlavorOf    func(string) string
	FlavorLabel string
	// Reads reports whether the scheduler may read an object; nil where all are that are there.
	Reads func(Key) bool
	// FabricLevel is the label of the domains that a group of GPUs may not leave, and Levels are those of all domains.
	FabricLevel string
	Levels      []string
}

// RulesOf returns the rules that a configuration has.
func RulesOf(args *config.Args) Rules {
	return Rules{GPUs: func(spec *corev1.PodSpec) int { return rank.PodGPUs(spec, args.GPUResource...) },
		FlavorOf: args.FlavorOf, FlavorLabel: args.FlavorLabel, FabricLevel: args.FabricLevel, Levels: args.TopologyLevels}
}

// Observed is a group as it stands.
type Observed struct {
	Rules
	Key Key
	// Pods are all pods of the group that there are, those that have ended included.
	Pods []*corev1.Pod
	// Object is what the group is known by; nil where that is no object, is not there, or may not be read.
	Object map[string]any
	// By is what makes the pods of a group of one, whatever their template, and Maker its object; nil where there is none,
	// or it may not be read.
	By    *metav1.OwnerReference
	Maker map[string]any
	// Above says what the object says, and then what it was made for, the nearest first.
	Above []Said
	// Unread is what is above these and may not be read, as KIND/NAME; empty where all is read.
	Unread string
	// MadeFor identifies what the object was made for, or the pods where there is none, the nearest first. Of an object
	// with several groups it begins with that.
	MadeFor []Key
	// Namespace are the annotations of the namespace.
	Namespace map[string]string
	// Types are the types of GPU that the fleet has.
	Types []string
	// anew says that what has completed is none of the group.
	anew bool
	// failed is how many ranks of a group that runs have pods that have failed.
	failed int32
}

// Derived is the Run that stands for a group.
type Derived struct {
	// Name of the Run, and Spec; nil where there is none, or none yet.
	Name string
	Spec *rqv1.RunSpec
	// Problem is why there is none, in a sentence that says what mends it, and Waits what is waited for; empty otherwise.
	Problem, Waits string
	// Note says what of the group's wishes the Run does not have; empty where it has all.
	Note string
	// Exclusive are the labels of which Jobs of the group are to have domains for themselves, separated by commas, where
	// groups of GPUs stay within those of another.
	Exclusive string
}

// Hash tells one spec from another.
func (d *Derived) Hash() string {
	text, err := json.Marshal(d.Spec)
	if err != nil {
		return "" // a spec can always be written
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:16]
}

// DeriveNew returns the Run that stands for a group of which none has begun: its controller makes no pods for what has
// completed before, such as before it was suspended.
func DeriveNew(o *Observed) Derived {
	of := *o
	of.anew = true
	return Derive(&of)
}

// problemOf says what is wrong with a group whose pods ask for so many GPUs each; empty for nothing.
func problemOf(o *Observed, shape *Shape, members []member, perPod int) string {
	if o.Key.Kind == kindPod && Dropped(members[0].pod) {
		return fmt.Sprintf("%s was made with spec.schedulingGroup, which names its PodGroup, and the API server "+
			"dropped that field: %s, and create the pod again, or name the group by annotations %s and %s", o.Key,
			ToServe(nativeKind), rqv1.AnnotationGroup, rqv1.AnnotationGroupSize)
	}
	if o.Key.Alone() {
		if why := Unserved(members[0].pod); why != "" {
			return why
		}
	}
	if len(o.Key.Name) > longestObjectName {
		return fmt.Sprintf("the name of %s has %d letters, and may have %d at most: shorten it in annotation %s of its pods",
			o.Key, len(o.Key.Name), longestObjectName, rqv1.AnnotationGroup)
	}
	if why := sizeProblem(o.Key, members); why != "" {
		return why
	}
	if shape.mixed != "" {
		return fmt.Sprintf("%s %s: %s", o.Key, shape.mixed, asManyEach)
	}
	if why := shape.uneven(o.Key); why != "" {
		return why
	}
	if perPod > topology.MaxGPUsPerNode {
		return fmt.Sprintf("each pod of %s asks for %d GPUs or more, and a node may have %d at most", o.Key, perPod,
			topology.MaxGPUsPerNode)
	}
	if gpus := int64(shape.Ranks) * int64(perPod); gpus > maxPods {
		return fmt.Sprintf("%s asks for %d GPUs, and a Run may have %d at most", o.Key, gpus, maxPods)
	}
	return ""
}

// Derive returns the Run that stands for a group. A group that asks for no GPUs has none.
func Derive(o *Observed) Derived {
	shape, waits := shapeOf(o)
	if shape.Begun { // those that have completed are none of it
		o = o.live()
	}
	members := membersOf(o)
	out := Derived{Name: RunName(o.Key)}
	perPod, problem := perPodOf(members)
	if perPod == 0 || problem != "" {
		out.Problem = problem
		return out
	}
	out.Problem = problemOf(o, &shape, members, perPod)
	if out.Problem != "" {
		return out
	}
	p, total := paramsOf(o, members), int32(shape.Ranks*perPod)
	spec := &rqv1.RunSpec{Owner: p.owner(o, int(total)), Source: rqv1.SourcePods,
		Pods: podsOf(o.Key, shape, members[0].Late),
		Resources: rqv1.RunResources{GPUType: p.gpuType(o, members), TotalGPUs: total,
			GPUsPerPod: ptr.To(int32(perPod))}}
	p.setLocality(spec, o, &shape, perPod)
	out.Note = plan.OtherDomains(o.Key.String(), shape.within, o.FabricLevel)
	if out.Note != "" {
		out.Exclusive = strings.Join(shape.within, ",")
	}
	p.setWidth(spec, int32(shape.Least*perPod), total)
	if spares := p.gpus(rqv1.AnnotationSpares, 1, 0); spares > 0 {
		spec.SparesPerGroup = &spares
	}
	p.setRuntime(spec)
	spec.PriorityClassName = members[0].pod.Spec.PriorityClassName
	switch {
	case len(p.problems) > 0:
		out.Problem = p.problems[0]
	case waits != "":
		out.Waits = waits
	default:
		out.Spec = spec
	}
	return out
}

// podsOf says what pods a Run stands for, and how many come first where others come late.
func podsOf(k Key, shape Shape, late bool) *rqv1.RunPods {
	pods := &rqv1.RunPods{APIGroup: k.API, Kind: k.Kind, Name: k.Name, Late: shape.Late || late}
	if pods.Late {
		pods.First = int32(shape.First)
	}
	return pods
}

const asManyEach = "all pods of a group that ask for GPUs must ask for the same number"

// perPodOf returns how many GPUs each pod asks for that asks for any, and what is wrong where they differ.
func perPodOf(members []member) (perPod int, problem string) {
	by := ""
	for _, m := range members {
		switch {
		case m.gpus == 0 || m.gpus == perPod:
		case perPod == 0:
			perPod, by = m.gpus, m.pod.Name
		default:
			return 0, fmt.Sprintf("pod %s of %s asks for %d GPUs and pod %s for %d: %s", m.pod.Name, m.Key, m.gpus, by, perPod,
				asManyEach)
		}
	}
	return perPod, ""
}

// setLocality has groups of GPUs that are said, or that parts of the group are, share a domain. A JobSet of one Job is
// such a part if the Job is to have a domain for itself. A group that is to lie in one domain does for as long as it
// lives, however many pods it comes to have.
func (p *params) setLocality(spec *rqv1.RunSpec, o *Observed, shape *Shape, perPod int) {
	group, slice := p.gpus(rqv1.AnnotationGroupGPUs, perPod, 1), int32(shape.slice()*perPod)
	total, key := spec.Resources.TotalGPUs, topologyKey(o.Object)
	together := key != "" && key == o.FabricLevel || shape.whole && slices.Contains(shape.within, o.FabricLevel)
	switch {
	case key != "" && !together:
		p.problems = append(p.problems, fmt.Sprintf("%s asks for one domain of %s, and a group of GPUs stays within one of "+
			"%s: leave the topology constraint out or name that key", o.Key, key, o.FabricLevel))
	case group > 0 && total%group != 0:
		value, by := p.get(rqv1.AnnotationGroupGPUs)
		p.problem(rqv1.AnnotationGroupGPUs, by, value,
			fmt.Sprintf("and the %d GPUs of %s are not a multiple of it", total, o.Key))
	case group > 0 && slice > 0 && len(shape.within) > 0 && group != slice:
		value, by := p.get(rqv1.AnnotationGroupGPUs)
		p.problem(rqv1.AnnotationGroupGPUs, by, value, fmt.Sprintf("and the Jobs of %s, which ask for domains of "+
			"their own, have %d GPUs each", o.Key, slice))
	case group == 0 && !together && slice > 0 && (slice < total || len(shape.within) > 0):
		group = slice
	}
	if group > 0 || together {
		spec.Locality = &rqv1.RunLocality{}
	}
	if group > 0 {
		spec.Locality.GroupGPUs = &group
	}
	if together {
		spec.Locality.AllowCrossGroupSpread = ptr.To(false)
	}
}

// topologyKey returns the key of the domain that a PodGroup is to lie in; empty when it says none.
func topologyKey(object map[string]any) string {
	spec, _ := object["spec"].(map[string]any)
	constraints, _ := spec["schedulingConstraints"].(map[string]any)
	topology, _ := constraints["topology"].([]any)
	if len(topology) == 0 {
		return ""
	}
	first, _ := topology[0].(map[string]any)
	key, _ := first["key"].(string)
	return key
}

// setWidth makes a Run malleable that may do with less: by annotation, or because the group starts with fewer pods than
// there are.
func (p *params) setWidth(spec *rqv1.RunSpec, least, total int32) {
	step := *spec.Resources.GPUsPerPod
	if l := spec.Locality; l != nil && l.GroupGPUs != nil {
		step = *l.GroupGPUs
	}
	if said := p.gpus(rqv1.AnnotationMinWidth, int(step), 1); said > 0 {
		if said > total {
			value, by := p.get(rqv1.AnnotationMinWidth)
			p.problem(rqv1.AnnotationMinWidth, by, value, fmt.Sprintf("more than the %d GPUs that the group asks for", total))
			return
		}
		least = said
	}
	if least < total && (total-least)%step == 0 {
		spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: least, MaxTotalGPUs: total, StepGPUs: step}
	}
}

func (p *params) setRuntime(spec *rqv1.RunSpec) {
	longest, checkpoint := p.duration(rqv1.AnnotationMaxDuration), p.duration(rqv1.AnnotationCheckpoint)
	if longest != nil || checkpoint != nil {
		spec.Runtime = &rqv1.RunRuntime{MaxDuration: longest, Checkpoint: checkpoint}
	}
}

// RunName returns the name of the Run that stands for a group: KIND-NAME-HASH, as far as there is room.
func RunName(k Key) string {
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join([]string{k.Namespace, k.API, k.Kind, k.Name}, "/"))))[:8]
	name := strings.Map(func(r rune) rune { // what names a group may be a label's value, or any text
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(k.Kind+"-"+k.Name))
	name = strings.TrimRight(name[:min(len(name), longestName-len(hash)-1)], "-")
	return name + "-" + hash
}

// longestName is how long the name of a Run may be.
const longestName = 52
