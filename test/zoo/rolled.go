package zoo

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/story"
)

// rollouts are the situations in which the template of a workload changes whose controller makes its pods anew then.
func (w *Workload) rollouts() []situation {
	if kind := kindOf(w.objects[0]); kind == nil || !kind.rolls {
		return nil
	}
	return []situation{{name: "rolls", play: (*told).rolls},
		{name: "rolls-on-a-full-fleet", play: (*told).rollsWhereNothingIsFree}}
}

const rolled = "example.com/rolled"

// changes has somebody change the template.
func (t *told) changes() {
	t.T.Helper()
	o := t.roots[0]
	if err := t.Change(o, func() {
		mapAt(o.Object, "spec.template.metadata.annotations")[rolled] = "true"
	}); err != nil {
		t.Fatalf("%v", err)
	}
}

// isNew is an error unless all pods are of the new template, run, and are all that is paid for.
func (t *told) isNew(w *story.World) error {
	for _, pod := range w.Pods {
		if pod.Spec.SchedulerName == rqv1.SchedulerName && pod.Labels[rqv1.LabelRun] != younger &&
			pod.Annotations[rolled] == "" {
			return fmt.Errorf("pod %s is of the old template", pod.Name)
		}
	}
	return t.runs(w)
}

// rolls: in the end all pods are new and run, and nothing is held for old ones.
func (t *told) rolls() {
	t.makes()
	t.sees("is to run", t.runs)
	t.changes()
	t.sees("is to run anew", t.isNew)
	t.Sound()
}

// rollsWhereNothingIsFree: a new pod has the place of an old one that goes first, and that of a StatefulSet before
// anybody younger. One that is to run beside the old ones waits and is told why, while these run on, until there is
// room.
func (t *told) rollsWhereNothingIsFree() {
	t.makes()
	t.sees("is to run", t.runs)
	t.Later(2 * time.Second) // when a Run has started is known in whole seconds
	places, surge := t.places(), numberAt(t.roots[0].Object, "spec.strategy.rollingUpdate.maxSurge", 0) > 0
	t.crowds()
	t.changes()
	if surge {
		t.sees("is to wait beside what runs", t.waitsBeside)
		t.DeletePod("others-d0-4")
	}
	t.sees("is to run anew", t.isNew)
	if !surge {
		t.Same("its places", places, t.places())
		t.Nothing(younger)
	}
	t.Sound()
}

// waitsBeside is an error unless one new pod waits and is told why, and all of the old template run.
func (t *told) waitsBeside(w *story.World) error {
	gpu, _ := t.own(w)
	waits := 0
	for _, pod := range gpu {
		switch {
		case pod.Annotations[rolled] == "" && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil:
		case pod.Annotations[rolled] != "" && pod.Spec.NodeName == "" && strings.Contains(why(pod), "short by"):
			waits++
		default:
			return fmt.Errorf("pod %s is %s on %q, told %s", pod.Name, pod.Status.Phase, pod.Spec.NodeName, why(pod))
		}
	}
	if waits != 1 || holds(w) != t.w.GPUs {
		return fmt.Errorf("%d pods wait, and %d GPUs are held", waits, holds(w))
	}
	return nil
}
