package group

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// unserved are labels and annotations by which other schedulers know groups of pods, and whose they are. They are not
// read here: pods of such a group would start one by one.
var unserved = []struct{ key, by string }{
	{"scheduling.k8s.io/group-name", "Volcano"},
	{"scheduling.volcano.sh/group-name", "Volcano"},
	{"volcano.sh/job-name", "Volcano"},
	{"grove.io/podgang", "Grove"},
	{"yunikorn.apache.org/task-group-name", "YuniKorn"},
	{"gang.scheduling.koordinator.sh/name", "Koordinator"},
	{"pod-group-name", "KAI"},
	{"pod-group.scheduling.sigs.k8s.io", "an older coscheduling plugin"},
	{"pod-group.scheduling.sigs.k8s.io/name", "an older coscheduling plugin"},
}

// Unserved says that a pod which is a group of its own names another by words that are not read here; empty where it
// names none.
func Unserved(pod *corev1.Pod) string {
	for _, w := range unserved {
		name, where := pod.Labels[w.key], "label"
		if name == "" {
			name, where = pod.Annotations[w.key], "annotation"
		}
		if name != "" {
			return fmt.Sprintf("Pod/%s is in group %s by %s %s of %s, which jobtree does not read: name the group by "+
				"annotations %s and %s as well", pod.Name, name, where, w.key, w.by, rqv1.AnnotationGroup,
				rqv1.AnnotationGroupSize)
		}
	}
	return ""
}
