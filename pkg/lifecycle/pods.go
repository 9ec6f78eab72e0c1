package lifecycle

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// RendezvousPort is the port of the rendezvous address, torchrun's default.
const RendezvousPort = 29500

// absent returns the pods that the Run should have and has not, those that take the places of spares apart. A rank whose pod
// ended well is not missed (R28), and a name that an earlier pod still has is waited for. A Run that nobody can pay for has none (R32).
func (s *state) absent() (replacements, out []*corev1.Pod) {
	if s.Unpaid {
		return nil, nil
	}
	pods, spares := s.expected()
	most := s.mayWait()
	for index, pod := range pods {
		if len(out) >= most {
			break
		}
		if pod == nil && !s.taken[rank.Part{Index: index}.PodName(s.Run.Name)] {
			pod := s.newPod(index)
			if r, ok := s.relief[index]; ok {
				pod.Annotations = withLabels(pod.Annotations, map[string]string{rqv1.AnnotationReplaces: r.Annotation()})
			}
			if s.relief[index].Spare != "" {
				replacements = append(replacements, pod)
				continue
			}
			out = append(out, pod)
		}
	}
	for index, pod := range spares {
		if pod == nil && !s.taken[rank.Part{Index: index, Spare: true}.PodName(s.Run.Name)] {
			out = append(out, s.newSpare(index))
		}
	}
	return replacements, out
}

// newPod returns the pod of a rank: the Run's template or a pause container, with the rank's identity.
func (s *state) newPod(index int) *corev1.Pod {
	template := &corev1.PodTemplateSpec{}
	if s.Run.Spec.Template != nil {
		template = s.Run.Spec.Template.DeepCopy()
	}
	withoutOurs(template.Labels)
	withoutOurs(template.Annotations) // a pod that says whose place it takes says so with the scheduler's word
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	part := rank.Part{Index: index}
	pod.Finalizers = nil // a rank whose node is lost could not be replaced until somebody takes them off
	pod.Name, pod.GenerateName, pod.Namespace = part.PodName(s.Run.Name), "", s.Run.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{ownerOf(s.Run)}
	pod.Labels = withLabels(pod.Labels, s.labelsOf(part, strconv.Itoa(s.Demand.GroupOf(index))))
	pod.Labels[rqv1.LabelEpoch] = "0"
	spec := &pod.Spec
	spec.SchedulerName, spec.SchedulingGates, spec.NodeName = rqv1.SchedulerName, nil, ""
	spec.RestartPolicy = cmp.Or(spec.RestartPolicy, corev1.RestartPolicyNever)
	spec.Hostname, spec.Subdomain = pod.Name, s.Run.Name
	if len(spec.Containers) == 0 {
		spec.Containers = []corev1.Container{{Name: "pause", Image: s.PauseImage, SecurityContext: leastPrivilege()}}
		grace := int64(0)
		spec.TerminationGracePeriodSeconds = &grace
	}
	pod.Finalizers = nil // nobody would take them off
	s.capGrace(spec)
	s.requestGPUs(spec)
	identity := s.identity(index)
	for i := range spec.Containers {
		spec.Containers[i].Env = withEnv(identity, spec.Containers[i].Env)
	}
	return pod
}

// labelsOf returns the labels that tell a pod's part in its Run.
func (s *state) labelsOf(part rank.Part, group string) map[string]string {
	return map[string]string{
		rqv1.LabelRun:        s.Run.Name,
		rqv1.LabelRunUID:     string(s.Run.UID),
		rqv1.LabelIndex:      strconv.Itoa(part.Index),
		rqv1.LabelGroupIndex: group,
		rqv1.LabelCohort:     s.cohortOf(part),
		rqv1.LabelRole:       string(rank.RoleOf(&s.Run.Spec, part)),
	}
}

// requestGPUs has the first container ask for the pod's GPUs, unless the template says which containers do.
func (s *state) requestGPUs(spec *corev1.PodSpec) {
	if rank.PodGPUs(spec, s.GPUResource) > 0 {
		return
	}
	resources := &spec.Containers[0].Resources
	if resources.Limits == nil {
		resources.Limits = corev1.ResourceList{}
	}
	delete(resources.Requests, corev1.ResourceName(s.GPUResource)) // it may say 0
	resources.Limits[corev1.ResourceName(s.GPUResource)] = *resource.NewQuantity(int64(s.Demand.GPUsPerPod), resource.DecimalSI)
}

// identity is the environment that tells a container its rank: RANK and WORLD_SIZE count pods, and torchrun reads its
// options from PET_*. Pods are made before it is known how wide a malleable Run starts: WORLD_SIZE is its total, or what it
// has grown to when that is more.
func (s *state) identity(index int) []corev1.EnvVar {
	world := max(int(s.Run.Spec.Resources.TotalGPUs), s.Demand.GPUs()) / s.Demand.GPUsPerPod
	number, pods := strconv.Itoa(index), strconv.Itoa(world)
	address, port := rank.Part{}.PodName(s.Run.Name)+"."+s.Run.Name, strconv.Itoa(RendezvousPort)
	return []corev1.EnvVar{
		{Name: "RANK", Value: number},
		{Name: "WORLD_SIZE", Value: pods},
		{Name: "MASTER_ADDR", Value: address},
		{Name: "MASTER_PORT", Value: port},
		{Name: "PET_NNODES", Value: s.nodes()},
		{Name: "PET_NODE_RANK", Value: number},
		{Name: "PET_NPROC_PER_NODE", Value: strconv.Itoa(s.Demand.GPUsPerPod)},
		{Name: "PET_MASTER_ADDR", Value: address},
		{Name: "PET_MASTER_PORT", Value: port},
		{Name: "PET_RDZV_ENDPOINT", Value: fmt.Sprintf("%s:%s", address, port)},
		{Name: "PET_RDZV_ID", Value: string(s.Run.UID)},
		{Name: "JOBTREE_RUN", Value: s.Run.Name},
		{Name: epochVariable, Value: "0"},
		{Name: "JOBTREE_GROUP_INDEX", Value: strconv.Itoa(s.Demand.GroupOf(index))},
	}
}

// nodes is how many pods torchrun is to expect: the least and the most that there may be of a malleable Run.
func (s *state) nodes() string {
	m := s.Run.Spec.Malleable
	if s.opportunistic() {
		return fmt.Sprintf("1:%d", s.Demand.Pods())
	}
	if m == nil {
		return strconv.Itoa(int(s.Run.Spec.Resources.TotalGPUs) / s.Demand.GPUsPerPod)
	}
	return fmt.Sprintf("%d:%d", int(m.MinTotalGPUs)/s.Demand.GPUsPerPod, int(m.MaxTotalGPUs)/s.Demand.GPUsPerPod)
}

// service returns the headless Service that gives every rank a name: RUN-INDEX.RUN. Ranks find each other before they are
// ready; spares have none.
func service(run *rqv1.Run) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: run.Name, Namespace: run.Namespace,
			Labels:          map[string]string{rqv1.LabelRun: run.Name},
			OwnerReferences: []metav1.OwnerReference{ownerOf(run)},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			Selector:                 map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRole: string(rank.RoleOf(&run.Spec, rank.Part{}))},
			PublishNotReadyAddresses: true,
			Ports:                    []corev1.ServicePort{{Name: "rendezvous", Port: RendezvousPort}},
		},
	}
}

func ownerOf(run *rqv1.Run) metav1.OwnerReference {
	return *metav1.NewControllerRef(run, rqv1.GroupVersion.WithKind("Run"))
}

// withoutOurs takes out of a template's labels or annotations what only the scheduler writes. Admission refuses it; a Run may be
// older than that.
func withoutOurs(template map[string]string) {
	maps.DeleteFunc(template, func(key, _ string) bool { return strings.HasPrefix(key, rqv1.GroupName+"/") })
}

func withLabels(labels, ours map[string]string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	for key, value := range ours {
		labels[key] = value
	}
	return labels
}

// withEnv puts variables before a container's own, which may refer to them and override them.
func withEnv(first, own []corev1.EnvVar) []corev1.EnvVar {
	set := map[string]bool{}
	for i := range own {
		set[own[i].Name] = true
	}
	var out []corev1.EnvVar
	for _, variable := range first {
		if !set[variable.Name] {
			out = append(out, variable)
		}
	}
	return append(out, own...)
}
