package lifecycle

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// pauseUser is the user that a spare's container runs as: nobody, which every image can run as.
const pauseUser = 65535

// newSpare returns a spare's pod: a pause container that requests no GPU, since its Lease holds them (R15). It mounts
// the images of the Run's template, so that the kubelet has them when the node is needed, and is admitted to the nodes
// that the Run's other pods are: admission may have given those tolerations for the GPUs that they request.
func (m *maker) newSpare(index int) *corev1.Pod {
	part := rank.Part{Index: index, Spare: true}
	group := m.groupLabel(part)
	template := corev1.PodSpec{}
	if m.run.Spec.Template != nil {
		template = *m.run.Spec.Template.Spec.DeepCopy()
	}
	pause := corev1.Container{Name: "pause", Image: m.rules.PauseImage, SecurityContext: leastPrivilege(),
		Env: []corev1.EnvVar{
			{Name: "JOBTREE_RUN", Value: m.run.Name},
			{Name: "JOBTREE_GROUP_INDEX", Value: group},
		}}
	tolerations := enduring(template.Tolerations)
	for i := 0; m.rank != nil && i < len(m.rank.Spec.Tolerations); i++ {
		admitted := &m.rank.Spec.Tolerations[i]
		if !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return t.MatchToleration(admitted) }) {
			tolerations = append(tolerations, *admitted)
		}
	}
	volumes := images(&template)
	for i := range volumes {
		pause.VolumeMounts = append(pause.VolumeMounts,
			corev1.VolumeMount{Name: volumes[i].Name, MountPath: fmt.Sprintf("/warm/%d", i), ReadOnly: true})
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.run.Namespace, Name: part.PodName(m.run.Name),
			OwnerReferences: []metav1.OwnerReference{ownerOf(m.run)},
			Labels:          m.labels(part),
		},
		Spec: corev1.PodSpec{
			SchedulerName:                 rqv1.SchedulerName,
			RestartPolicy:                 corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: new(int64),
			Containers:                    []corev1.Container{pause},
			Volumes:                       volumes,
			Tolerations:                   tolerations,
			NodeSelector:                  template.NodeSelector,
			Affinity:                      template.Affinity,
			ImagePullSecrets:              template.ImagePullSecrets,
			ServiceAccountName:            template.ServiceAccountName,
			AutomountServiceAccountToken:  new(bool),
		},
	}
}

// images returns a volume for each image that containers of the spec run, in order of first use.
func images(spec *corev1.PodSpec) []corev1.Volume {
	var out []corev1.Volume
	seen := map[string]bool{}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			if c.Image == "" || seen[c.Image] {
				continue
			}
			seen[c.Image] = true
			out = append(out, corev1.Volume{Name: fmt.Sprintf("image-%d", len(out)), VolumeSource: corev1.VolumeSource{
				Image: &corev1.ImageVolumeSource{Reference: c.Image, PullPolicy: c.ImagePullPolicy},
			}})
		}
	}
	return out
}

// leastPrivilege is what the strictest pod security standard asks for: spares, and Runs without a template, are to be
// admitted in every namespace.
func leastPrivilege() *corev1.SecurityContext {
	yes, no, user := true, false, int64(pauseUser)
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no, RunAsNonRoot: &yes, RunAsUser: &user,
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}
