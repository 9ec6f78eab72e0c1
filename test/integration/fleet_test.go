package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// nodesOf are the nodes of a Run's pods, without the site's name, each with its number of pods.
func (s *site) nodesOf(run string) map[string]int {
	s.t.Helper()
	out := map[string]int{}
	for _, pod := range s.podsOf(run) {
		out[strings.TrimPrefix(pod.Spec.NodeName, s.namespace+"-")]++
	}
	return out
}

// TestNodesThatAreNotUsed has one usable node among others that are not, each for a reason of its own.
func TestNodesThatAreNotUsed(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 0, 0, 100)
	cordoned, tainted := s.node("cordoned", "a"), s.node("tainted", "a")
	cordoned.Spec.Unschedulable = true
	tainted.Spec.Taints = []corev1.Taint{{Key: "team", Value: "other", Effect: corev1.TaintEffectNoSchedule}}
	full, mislabelled := s.node("full", "a"), s.node("mislabelled", "a")
	delete(mislabelled.Labels, "fabric.domain")
	s.load(*cordoned, *tainted, *full, *mislabelled, *s.node("usable", "a"))
	s.create(s.foreign("holder", "full", 1))
	s.submit("two", 16, inPods(8))
	s.await("two", rqv1.RunPending, "short by 8")
	s.submit("one", 8)
	s.await("one", rqv1.RunRunning, "bound 8 GPUs")
	if nodes := s.nodesOf("one"); nodes["usable"] != 1 {
		t.Errorf("it runs on %v", nodes)
	}
	s.submit("tolerant", 8, func(r *rqv1.Run) {
		template(r).Spec.Tolerations = []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}}
	})
	s.await("tolerant", rqv1.RunRunning, "bound 8 GPUs")
	if nodes := s.nodesOf("tolerant"); nodes["tainted"] != 1 {
		t.Errorf("it runs on %v", nodes)
	}
	eventually(t, "an event on the mislabelled node", func() error {
		return s.nodeTold(mislabelled.Name, "LeftOut", "fabric.domain")
	})
	s.settled()
}

// nodeTold is an error unless an event tells something of a node, and why.
func (s *site) nodeTold(node, reason, why string) error {
	var events eventsv1.EventList
	if err := s.api.List(s.t.Context(), &events); err != nil {
		return err
	}
	for _, event := range events.Items {
		if event.Regarding.Kind == "Node" && event.Regarding.Name == node && event.Reason == reason &&
			strings.Contains(event.Note, why) {
			return nil
		}
	}
	return fmt.Errorf("none of %d events is it", len(events.Items))
}

// TestTerminatingPodsHoldTheirGPUs deletes a Run whose pods take seconds to end: the next Run waits for them.
func TestTerminatingPodsHoldTheirGPUs(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 1, 100)
	s.submit("slow", 8, annotated("pod-delete.stage.kwok.x-k8s.io/delay", "4s"), func(r *rqv1.Run) {
		grace := int64(30)
		r.Spec.Template.Spec.TerminationGracePeriodSeconds = &grace
	})
	s.await("slow", rqv1.RunRunning, "bound 8 GPUs")
	s.removeRun("slow")
	s.submit("next", 8)
	s.await("next", rqv1.RunPending, "short by 8")
	eventually(t, "the next Run is to start once the pods are gone", func() error {
		next, err := s.get("next")
		if err != nil {
			return err
		}
		started := is(next, rqv1.RunRunning, "") == nil
		switch left := len(s.podsOf("slow")); {
		case started && left > 0:
			t.Errorf("the next Run started beside %d pods that terminate", left)
			return nil
		case !started:
			return errors.New("it waits")
		}
		return nil
	})
	s.settled()
}

// TestForgedLabels creates and labels pods as if they were a Run's, with all rights that there are.
func TestForgedLabels(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 1, 100)
	pod := s.foreign("forged", "d0-0", 1)
	pod.Labels = map[string]string{rqv1.LabelRun: "somebody"}
	eventually(t, "a pod that forges labels is to be refused", func() error {
		// the policy comes into force some time after it is applied
		err := s.api.Create(t.Context(), pod.DeepCopy())
		if err == nil {
			s.delete(pod)
			return errors.New("it is accepted")
		}
		if !strings.Contains(err.Error(), "submit a Run instead") {
			return err
		}
		return nil
	})
	pod.Labels = nil
	s.create(pod)
	label := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:"0"}}}`, rqv1.LabelIndex))
	if err := s.api.Patch(t.Context(), pod, label); err == nil || !strings.Contains(err.Error(), "submit a Run instead") {
		t.Errorf("labelling a pod: %v", err)
	}
}
