package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestNodesThatAreLeftOut has a node lack a label: an event on it says so.
func TestNodesThatAreLeftOut(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 0, 0, 100)
	mislabelled := s.node("mislabelled", "a")
	delete(mislabelled.Labels, "fabric.domain")
	s.load(*mislabelled)
	eventually(t, "an event on the mislabelled node", func() error {
		return s.nodeTold(mislabelled.Name, "LeftOut", "fabric.domain")
	})
}

// ofNodes are the events about nodes, and about all else that is in no namespace.
const ofNodes = client.InNamespace(metav1.NamespaceDefault)

// nodeTold is an error unless an event tells something of a node, and why.
func (s *site) nodeTold(node, reason, why string) error {
	var events eventsv1.EventList
	if err := s.api.List(s.t.Context(), &events, ofNodes); err != nil {
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
