package group

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Key identifies a group of pods in a namespace.
type Key struct {
	Namespace string
	// API is the API group of what the group is known by; empty for pods, and for what pods say of themselves.
	API, Kind, Name string
}

// KeyOf returns the group that a Run stands for; false for one that makes its own pods.
func KeyOf(run *rqv1.Run) (Key, bool) {
	of := run.Spec.Pods
	if !run.Spec.Theirs() || of == nil {
		return Key{}, false
	}
	return Key{run.Namespace, of.APIGroup, of.Kind, of.Name}, true
}

// String is how people call a group. What pods say by an annotation may be longer than a name.
func (k Key) String() string {
	if len(k.Name) > longestObjectName {
		return k.Kind + "/" + strings.ToValidUTF8(k.Name[:mostShown], "") + "..."
	}
	return k.Kind + "/" + k.Name
}

// longestObjectName is how long the name of an object may be.
const longestObjectName = 253

// Member is what a pod says of the group that it is in.
type Member struct {
	Key
	// Size is how many pods the group has, 0 where the pod does not say, and badSize where it says what is no number of
	// pods.
	Size int
	// Index is the pod's place in its part of the group, and -1 where it has none. Part names that part, such as the Job
	// of a name and a number in a JobSet; it is empty where there are no parts.
	Index int
	Part  Part
	// Late says that pods of the group are made only once others are bound.
	Late bool
}

// Part is one of several parts that a group has, such as a Job of a JobSet or the workers of an MPIJob.
type Part struct {
	Name  string
	Index int
}

// Kinds of groups that are no objects of the API.
const (
	kindPod   = "Pod"   // a pod that is in no group
	kindGroup = "Group" // what pods say by our annotations
)

const kindLeaderWorkerSet = "LeaderWorkerSet"

// The native kind of groups, which pods name in their spec.
const (
	nativeAPI    = "scheduling.k8s.io"
	kindPodGroup = "PodGroup"
)

// written is what a kind of controller writes on its pods.
type written struct {
	api, kind string
	// name is the label that names the group, and with the label that tells one of several groups of that name.
	name, with string
	// by is a label, and is are the values of it, by which one of several kinds is known whose pods have that name.
	by string
	is []string
	// makers are kinds of the same API whose objects make such an object from what they hold.
	makers []string
	// size is the annotation, and index the label, that say what they say; empty where nothing does.
	size, index string
	// sizeAt is where the object says that size.
	sizeAt []string
	// part and partIndex are the labels of the parts; parts without a partIndex have one copy each.
	part, partIndex string
	// late are the annotations by which pods are made late; always says that they may be in any case.
	late   []string
	always bool
	// turns says that no pod which runs waits for one that comes after another has completed.
	turns bool
}

// kinds are what controllers write on pods, the first that applies first (R40).
var kinds = []written{
	{api: "scheduling.x-k8s.io", kind: "PodGroup", name: "scheduling.x-k8s.io/pod-group"},
	{api: "leaderworkerset.x-k8s.io", kind: kindLeaderWorkerSet, name: "leaderworkerset.sigs.k8s.io/name",
		with: "leaderworkerset.sigs.k8s.io/group-index", size: "leaderworkerset.sigs.k8s.io/size",
		index: "leaderworkerset.sigs.k8s.io/worker-index", always: true,
		sizeAt: []string{"spec", "leaderWorkerTemplate", "size"}},
	{api: "jobset.x-k8s.io", kind: "JobSet", name: "jobset.sigs.k8s.io/jobset-name",
		part: "jobset.sigs.k8s.io/replicatedjob-name", partIndex: "jobset.sigs.k8s.io/job-index",
		index: labelCompletion, late: []string{exclusiveTopology}},
	{api: "ray.io", kind: "RayCluster", makers: []string{"RayJob", "RayService"}, name: "ray.io/cluster",
		part: "ray.io/group", partIndex: "ray.io/worker-group-replica-index", index: "ray.io/replica-host-index"},
	kubeflow("MPIJob", "training.kubeflow.org/job-role", "mpi-operator", "mpijob-controller"),
	kubeflow("PyTorchJob", labelReplicaType, "pytorchjob-controller"),
	kubeflow("TFJob", labelReplicaType, "tfjob-controller"),
	kubeflow("JAXJob", labelReplicaType, "jaxjob-controller"),
	kubeflow("XGBoostJob", labelReplicaType, "xgboostjob-controller"),
	kubeflow("PaddleJob", labelReplicaType, "paddlejob-controller"),
	{api: "batch", kind: "Job", name: "batch.kubernetes.io/job-name", index: labelCompletion, turns: true},
	{kind: "PodGroup", name: "kueue.x-k8s.io/pod-group-name", size: kueueSize},
}

// labelCompletion is the index of a pod of an indexed Job, and labelReplicaType the part of a pod of a Kubeflow job.
const (
	labelCompletion  = "batch.kubernetes.io/job-completion-index"
	labelReplicaType = "training.kubeflow.org/replica-type"
)

// apiKubeflow is the API group of the jobs of Kubeflow that make their pods themselves.
const apiKubeflow = "kubeflow.org"

// kubeflow is what the operators of such jobs write on pods; all name a job in the same way.
func kubeflow(kind, part string, operators ...string) written {
	return written{api: apiKubeflow, kind: kind, name: "training.kubeflow.org/job-name",
		by: "training.kubeflow.org/operator-name", is: operators, part: part, index: "training.kubeflow.org/replica-index"}
}

// InTurns reports whether pods of a group come in turns: none that runs waits for one that comes after another has
// completed. In groups of kinds of which that is not said those that run may.
func InTurns(k Key) bool {
	return slices.ContainsFunc(kinds, func(w written) bool { return w.turns && w.api == k.API && w.kind == k.Kind })
}

// Of returns the group that a pod is in.
func Of(pod *corev1.Pod) Member {
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		m := Member{Key: Key{pod.Namespace, nativeAPI, kindPodGroup, *g.PodGroupName}, Index: indexOf(pod)}
		if by := metav1.GetControllerOfNoCopy(pod); by != nil {
			m.Part.Name = by.Name // each has indexes of its own
		}
		return m
	}
	for i := range kinds {
		if m, ok := kinds[i].of(pod); ok {
			return m
		}
	}
	if name := pod.Annotations[rqv1.AnnotationGroup]; name != "" {
		return Member{Key: Key{Namespace: pod.Namespace, Kind: kindGroup, Name: name},
			Size: sizeSaid(pod, rqv1.AnnotationGroupSize), Index: -1}
	}
	return Member{Key: Key{Namespace: pod.Namespace, Kind: kindPod, Name: pod.Name}, Size: 1, Index: 0}
}

// Named returns the groups that KIND/NAME may mean in a namespace: KIND is a kind in letters of any case, which the API
// group may follow after a dot.
func Named(namespace, kind, name string) (out []Key) {
	each(func(api, k string) {
		if key := (Key{namespace, api, k, name}); key.Means(kind, name) {
			out = append(out, key)
		}
	})
	return out
}

// Means reports whether KIND/NAME may mean what a key identifies.
func (k Key) Means(kind, name string) bool {
	return name == k.Name && (strings.EqualFold(kind, k.Kind) || k.API != "" && strings.EqualFold(kind, k.Kind+"."+k.API))
}

// each calls a function with every kind of group, by its API group and name.
func each(with func(api, kind string)) {
	with(nativeAPI, kindPodGroup)
	for i := range kinds {
		with(kinds[i].api, kinds[i].kind)
	}
	with("", kindGroup)
	with("", kindPod)
}

// KeepsName reports whether the controller of a pod, if it makes another in its place, gives it the same name, as that
// of a StatefulSet does. One that has the API server find names gives it another.
func KeepsName(pod *corev1.Pod) bool {
	return metav1.GetControllerOfNoCopy(pod) != nil && pod.GenerateName == ""
}

// Alone reports whether a group is a pod that is in no group but its own.
func (k Key) Alone() bool { return k.Kind == kindPod && k.API == "" }

// of returns what a pod says by the words of one kind of controller.
func (w *written) of(pod *corev1.Pod) (Member, bool) {
	name := pod.Labels[w.name]
	if name == "" || w.kind == "Job" && pod.Labels[labelCompletion] == "" {
		return Member{}, false // the pods of a Job that is not indexed are for themselves
	}
	if w.by != "" && !slices.Contains(w.is, pod.Labels[w.by]) {
		return Member{}, false
	}
	m := Member{Key: Key{pod.Namespace, w.api, w.kind, name}, Index: -1, Late: w.always}
	if w.with != "" {
		m.Name += "-" + pod.Labels[w.with]
	}
	m.Size = sizeSaid(pod, w.size)
	if text, ok := pod.Labels[w.index]; ok {
		m.Index = indexIn(text)
	}
	if w.part != "" {
		m.Part = Part{pod.Labels[w.part], max(0, indexIn(pod.Labels[w.partIndex]))}
	}
	for _, late := range w.late {
		m.Late = m.Late || pod.Annotations[late] != ""
	}
	return m, true
}

func indexOf(pod *corev1.Pod) int {
	if text, ok := pod.Labels[labelCompletion]; ok {
		return indexIn(text)
	}
	return -1
}

// indexIn returns an index, and -1 for what is none.
func indexIn(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxPods {
		return -1
	}
	return n
}

// maxPods is the most pods that a group may have.
const maxPods = 1000000

// Candidate reports whether a pod is for the scheduler to place and no Run made it. Its labels say so, which only the
// scheduler writes: whom it names as its controller is whoever's word who made it.
func Candidate(pod *corev1.Pod) bool {
	return pod.Spec.SchedulerName == rqv1.SchedulerName && (pod.Labels[rqv1.LabelRun] == "" || rank.Theirs(pod))
}
