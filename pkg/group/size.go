package group

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// badSize is the size by a text that is no number of pods: such a group waits, as one pod by itself is none of it.
const badSize = -1

// kueueSize is the annotation by which the pods of a group of Kueue's say how many they are.
const kueueSize = "kueue.x-k8s.io/pod-group-total-count"

// sizeSaid returns how many pods a group has by an annotation of one of them.
func sizeSaid(pod *corev1.Pod, key string) int {
	value, says := pod.Annotations[key]
	if !says {
		return 0
	}
	if n := indexIn(strings.TrimSpace(value)); n > 0 {
		return n
	}
	return badSize
}

// sizeKey returns the annotation by which the pods of a group say how many they are; empty where none does. Of some
// kinds nothing else tells it: must says so.
func sizeKey(k Key) (key string, must bool) {
	if k.API == "" && k.Kind == kindGroup {
		return rqv1.AnnotationGroupSize, true
	}
	i := slices.IndexFunc(kinds, func(w written) bool { return w.api == k.API && w.kind == k.Kind })
	if i < 0 {
		return "", false
	}
	return kinds[i].size, kinds[i].size == kueueSize
}

// sizeProblem says what is wrong with how many pods those of a group say that it has; empty for nothing. One that says
// no number of pods must not start as if it were all of the group.
func sizeProblem(k Key, members []member) string {
	key, must := sizeKey(k)
	byName := slices.SortedFunc(slices.Values(members), func(a, b member) int {
		return cmp.Compare(a.pod.Name, b.pod.Name)
	})
	for _, m := range byName {
		if m.Size == badSize {
			return fmt.Sprintf("annotation %s of Pod/%s is %s, which is not a number of pods from 1 to %d", key, m.pod.Name,
				shown(m.pod.Annotations[key]), maxPods)
		}
	}
	if must && sizeOf(members) == 0 {
		return fmt.Sprintf("nothing says how many pods %s has: add annotation %s to them when they are created", k, key)
	}
	return ""
}
