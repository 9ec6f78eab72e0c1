package lifecycle

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// RendezvousPort is the port of the rendezvous address, torchrun's default.
const RendezvousPort = 29500

// maker makes the pods of a Run.
type maker struct {
	run   *rqv1.Run
	rules *Rules
	// gpus is the resource that its pods request.
	gpus string
	// kept is the Run's shape without the cohort by which it grows, and shape its shape with it.
	kept, shape plan.Demand
	// cohort numbers the pods by which the Run grows.
	cohort string
	// rank is one of the Run's ranks as the API server has admitted it; nil while there is none.
	rank *corev1.Pod
}

// firstCohort numbers the pods of the start, and replacements.
const firstCohort = "0"

// labels returns the labels that tell a pod's part in its Run.
func (m *maker) labels(part rank.Part) map[string]string {
	cohort := m.cohort
	if m.kept.Has(part) {
		cohort = firstCohort
	}
	return map[string]string{
		rqv1.LabelRun:        m.run.Name,
		rqv1.LabelRunUID:     string(m.run.UID),
		rqv1.LabelIndex:      strconv.Itoa(part.Index),
		rqv1.LabelGroupIndex: m.groupLabel(part),
		rqv1.LabelCohort:     cohort,
		rqv1.LabelRole:       string(rank.RoleOf(&m.run.Spec, part)),
	}
}

// groupLabel returns the number of the group that a pod is in.
func (m *maker) groupLabel(part rank.Part) string { return strconv.Itoa(m.shape.Group(part)) }

// requestGPUs has the first container ask for the pod's GPUs, unless the template says which containers do.
func (m *maker) requestGPUs(spec *corev1.PodSpec) {
	if rank.PodGPUs(spec, m.gpus) > 0 {
		return
	}
	name, gpus := corev1.ResourceName(m.gpus), int64(m.shape.GPUsPerPod)
	resources := &spec.Containers[0].Resources
	if resources.Limits == nil {
		resources.Limits = corev1.ResourceList{}
	}
	delete(resources.Requests, name) // it may say 0
	resources.Limits[name] = *resource.NewQuantity(gpus, resource.DecimalSI)
}

// identity is the environment that tells a container its rank: RANK and WORLD_SIZE count pods, and torchrun reads its
// options from PET_*. A pod may be made before it is known how wide its Run starts: who binds it writes WORLD_SIZE.
func (m *maker) identity(index int) []corev1.EnvVar {
	number := strconv.Itoa(index)
	address, port := m.address(), strconv.Itoa(RendezvousPort)
	return []corev1.EnvVar{
		{Name: "RANK", Value: number},
		{Name: "WORLD_SIZE", ValueFrom: worldSize},
		{Name: "MASTER_ADDR", Value: address},
		{Name: "MASTER_PORT", Value: port},
		{Name: "PET_NNODES", Value: m.expectedNodes()},
		{Name: "PET_NODE_RANK", Value: number},
		{Name: "PET_NPROC_PER_NODE", Value: strconv.Itoa(m.shape.GPUsPerPod)},
		{Name: "PET_MASTER_ADDR", Value: address},
		{Name: "PET_MASTER_PORT", Value: port},
		{Name: "PET_RDZV_ENDPOINT", Value: fmt.Sprintf("%s:%s", address, port)},
		{Name: "PET_RDZV_ID", Value: string(m.run.UID)},
		{Name: "JOBTREE_RUN", Value: m.run.Name},
		{Name: epochVariable, Value: "0"},
		{Name: "TORCHELASTIC_RESTART_COUNT", Value: strconv.Itoa(m.restarts())},
		{Name: "JOBTREE_GROUP_INDEX", Value: m.groupLabel(rank.Part{Index: index})},
	}
}

// restarts is how often ranks of the Run have died and were started again.
func (m *maker) restarts() int {
	if r := m.run.Status.Restarts; r != nil {
		return int(r.Incidents)
	}
	return 0
}

// worldSize is where a container finds how many ranks there are.
var worldSize = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
	APIVersion: "v1", FieldPath: fmt.Sprintf("metadata.annotations['%s']", rqv1.AnnotationWorldSize)}}

// address is where rank 0 is.
func (m *maker) address() string {
	if alone(m.run, m.shape) {
		return "localhost"
	}
	return rank.Part{}.PodName(m.run.Name) + "." + m.run.Name
}

// alone reports whether a Run of a shape never has a second pod, spares included: nobody looks up where its pod is.
func alone(run *rqv1.Run, shape plan.Demand) bool {
	widest := run.Spec.Resources.TotalGPUs
	if m := run.Spec.Malleable; m != nil {
		widest = m.MaxTotalGPUs
	}
	return int(widest) == shape.GPUsPerPod && shape.SparesPerGroup == 0
}

// enduring puts those tolerations first by which nobody else ends the pods of a node that may be lost (R25): the first
// that matches counts. Who evicts for a taint deletes by name, and might hit a pod that has taken the place of the lost
// one by then.
func enduring(own []corev1.Toleration) []corev1.Toleration {
	var out []corev1.Toleration
	for _, taint := range [...]string{
		corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeOutOfService,
	} {
		out = append(out, corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffectNoExecute})
	}
	return append(out, own...)
}

// expectedNodes is how many pods torchrun is to expect: the least and the most that there may be of a malleable Run.
func (m *maker) expectedNodes() string {
	size := m.shape.GPUsPerPod
	if m.run.Spec.Opportunistic {
		return fmt.Sprintf("1:%d", m.shape.Pods())
	}
	malleable := m.run.Spec.Malleable
	if malleable == nil {
		return strconv.Itoa(int(m.run.Spec.Resources.TotalGPUs) / size)
	}
	return fmt.Sprintf("%d:%d", int(malleable.MinTotalGPUs)/size, int(malleable.MaxTotalGPUs)/size)
}

// service returns the headless Service that gives every rank a name: RUN-INDEX.RUN. Ranks find each other before they
// are ready; spares have none, and a Run that is alone needs none.
func service(run *rqv1.Run) *corev1.Service {
	role := string(rank.RoleOf(&run.Spec, rank.Part{}))
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: run.Name, Namespace: run.Namespace,
			Labels:          map[string]string{rqv1.LabelRun: run.Name},
			OwnerReferences: []metav1.OwnerReference{ownerOf(run)},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			Selector:                 map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRole: role},
			PublishNotReadyAddresses: true,
			Ports:                    []corev1.ServicePort{{Name: "rendezvous", Port: RendezvousPort}},
		},
	}
}

func ownerOf(run *rqv1.Run) metav1.OwnerReference {
	return *metav1.NewControllerRef(run, rqv1.GroupVersion.WithKind("Run"))
}
