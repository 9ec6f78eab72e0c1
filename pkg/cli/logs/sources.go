package logs

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/davidlangworthy/jobtree/pkg/cli/ranks"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// source is a container that prints.
type source struct {
	rank      int
	pod       *corev1.Pod
	container string
}

// choose finds what the wanted ranks of a Run print, the meant one if none is named. waits says what those wait for
// that have not started.
func (l *logs) choose(set *ranks.Set, wanted []int) (sources []source, waits string, err error) {
	why := ""
	switch {
	case l.all:
		wanted = set.Ranks()
	case len(wanted) == 0:
		var meant int
		meant, why = set.Meant()
		wanted = []int{meant}
	}
	if len(wanted) == 0 {
		_, err = set.Pod(0)
		return nil, l.waitsFor(set), err
	}
	l.several = l.all || len(wanted) > 1
	var problems []error
	for _, rank := range wanted {
		pod, err := set.Pod(rank)
		if err != nil {
			problems = append(problems, err)
			waits = l.waitsFor(set)
			continue
		}
		container, err := ranks.Container(pod, l.container)
		if err != nil {
			return nil, "", err
		}
		if !ranks.Started(pod, container) {
			waits = fmt.Sprintf("rank %d of Run %s has printed nothing yet: pod %s has not started%s%s", rank,
				session.NameOf(set.Run), pod.Name, onNode(pod), reasonOf(pod, container))
			problems = append(problems, session.Fail(session.ExitError, "%s", waits))
			continue
		}
		sources = append(sources, source{rank, pod, container})
	}
	l.tell(set, sources, why)
	return sources, waits, errors.Join(problems...)
}

// waitsFor says what a Run waits for that has no pods; empty for one that has them, or will not have any.
func (l *logs) waitsFor(set *ranks.Set) string {
	if set.Run.Ended() || len(set.Pods) > 0 {
		return ""
	}
	return fmt.Sprintf("Run %s is %s: %s", session.NameOf(set.Run), view.PhaseOf(set.Run),
		printers.EscapeTerminal(set.Run.Status.Message))
}

// tell says on standard error which ranks are shown, why, and what they printed that is gone.
func (l *logs) tell(set *ranks.Set, sources []source, why string) {
	if len(sources) == 1 && !l.several {
		s := sources[0]
		text := fmt.Sprintf("Rank %d of Run %s (pod %s on node %s)", s.rank, session.NameOf(set.Run), s.pod.Name,
			nodeOf(s.pod))
		switch {
		case why != "":
			text += ", " + why
		case len(set.Pods) > 1 && len(l.words) == 0:
			text += fmt.Sprintf(", one of %d; --rank N or --all shows others", len(set.Pods))
		}
		fmt.Fprintln(l.ErrOut, text)
	}
	for _, s := range sources {
		if d := set.LastDeath(s.rank); d != nil && d.Pod != s.pod.UID {
			fmt.Fprintf(l.ErrOut, "Rank %d was started again after it had ended at %s (%s); its earlier logs are gone\n",
				s.rank, view.Clock(d.At, l.Now()), ranks.Words(d))
		}
	}
}

func nodeOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName == "" {
		return "-"
	}
	return pod.Spec.NodeName
}

// onNode says where a pod is; nothing before it has a node.
func onNode(pod *corev1.Pod) string {
	if pod.Spec.NodeName == "" {
		return ""
	}
	return " on node " + pod.Spec.NodeName
}

// reasonOf says in brackets why a container has not started.
func reasonOf(pod *corev1.Pod, container string) string {
	for i := range pod.Status.ContainerStatuses {
		if c := &pod.Status.ContainerStatuses[i]; c.Name == container && c.State.Waiting != nil {
			return view.Because(c.State.Waiting.Reason, c.State.Waiting.Message)
		}
	}
	return ""
}

// options are what is asked of a container's log.
func (l *logs) options(container string) *corev1.PodLogOptions {
	options := &corev1.PodLogOptions{Container: container, Follow: l.follow, Previous: l.previous,
		Timestamps: l.timestamps}
	if l.tail >= 0 {
		options.TailLines = &l.tail
	}
	if l.since > 0 {
		seconds := max(1, int64(l.since/time.Second))
		options.SinceSeconds = &seconds
	}
	return options
}
