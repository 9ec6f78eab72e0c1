package ranks

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// defaultContainer is the annotation by which kubectl knows a pod's main container, too.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// Parse reads ranks as people name them: numbers and ranges such as 0-3. They come in order, each once.
func Parse(words []string) ([]int, error) {
	var ranks []int
	for _, word := range words {
		from, to, isRange := strings.Cut(word, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 31)
		last, err2 := strconv.ParseUint(to, 10, 31)
		if err != nil || err2 != nil || last < first || last >= rank.MaxPods {
			return nil, session.Fail(session.ExitUsage, "--rank takes numbers and ranges, such as 3 or 0-7,12, not %q", word)
		}
		for r := first; r <= last; r++ {
			ranks = append(ranks, int(r))
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks), nil
}

// Container returns the container of a pod that is meant: the one that is named, if the pod has it, the one that the
// pod's annotation names, or else its first.
func Container(pod *corev1.Pod, named string) (string, error) {
	var names []string
	for _, of := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range of {
			names = append(names, of[i].Name)
		}
	}
	switch main := pod.Annotations[defaultContainer]; {
	case named == "" && slices.Contains(names, main):
		return main, nil
	case named == "" && len(names) > 0:
		return names[0], nil
	case slices.Contains(names, named):
		return named, nil
	}
	return "", session.Fail(session.ExitUsage, "pod %s has no container %q; choose from %s", pod.Name, named,
		strings.Join(names, ", "))
}

// Started reports whether a container of a pod has ever run.
func Started(pod *corev1.Pod, container string) bool {
	for _, of := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range of {
			if c := &of[i]; c.Name == container {
				return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
			}
		}
	}
	return false
}
