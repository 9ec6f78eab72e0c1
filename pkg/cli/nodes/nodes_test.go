package nodes

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/suspicion"
)

func TestNodesStanding(t *testing.T) {
	node := func(name, gpus string, ready corev1.ConditionStatus, cordoned bool,
		annotations map[string]string) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
			Spec: corev1.NodeSpec{Unschedulable: cordoned}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		if gpus != "" {
			n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)}
		}
		return n
	}
	tpus := func(name, count string) corev1.Node {
		n := node(name, "", corev1.ConditionTrue, false, nil)
		n.Status.Capacity = corev1.ResourceList{"google.com/tpu": resource.MustParse(count)}
		return n
	}
	lost := map[string]string{rqv1.AnnotationLost: "2030-01-02T12:00:00Z KubeletLeaseStale silent for 30s"}
	held := map[string]string{rqv1.AnnotationHeldBack: "2030-01-02T12:00:00Z NodeNotReady not Ready for 30s"}
	since := clitest.After(0)
	against, _ := suspicion.Record{}.With(suspicion.Mark{At: since.Time, Why: suspicion.TwoOwners, Message: "two died"})
	cleared := against
	cleared.Cleared = since.Add(time.Hour)
	got := nodesStanding([]corev1.Node{
		node("fine", "8", corev1.ConditionTrue, false, nil),
		node("uncordoned", "8", corev1.ConditionTrue, false, lost),
		node("cpu", "", corev1.ConditionTrue, false, nil),
		node("b-lost", "8", corev1.ConditionUnknown, true, lost),
		node("a-lost", "4", corev1.ConditionTrue, true, map[string]string{rqv1.AnnotationLost: "by hand"}),
		node("shut", "8", corev1.ConditionTrue, false, map[string]string{
			rqv1.AnnotationMaintenanceStart: "2030-01-02T15:00:00Z"}),
		node("ready again", "8", corev1.ConditionTrue, false, map[string]string{
			rqv1.AnnotationMaintenanceStart: "2030-01-01T15:00:00Z", rqv1.AnnotationMaintenanceEnd: "2030-01-01T16:00:00Z"}),
		node("held", "8", corev1.ConditionUnknown, false, held),
		node("cordoned", "8", corev1.ConditionTrue, true, nil),
		tpus("tpus", "4"),
		node("unready", "8", corev1.ConditionFalse, false, nil),
		node("doubted", "8", corev1.ConditionTrue, false, map[string]string{rqv1.AnnotationSuspect: against.String()}),
		node("cleared", "8", corev1.ConditionTrue, false, map[string]string{rqv1.AnnotationSuspect: cleared.String()}),
	}, config.Resources{"nvidia.com/gpu", "google.com/tpu"}, clitest.After(23*time.Hour).Time)
	want := []nodeStanding{
		{Name: "a-lost", GPUs: 4, State: "Lost", Message: "by hand", Cordoned: true, Ready: "True"},
		{Name: "b-lost", GPUs: 8, State: "Lost", Since: &since, Reason: "KubeletLeaseStale", Message: "silent for 30s",
			Cordoned: true, Ready: "Unknown"},
		{Name: "held", GPUs: 8, State: "HeldBack", Since: &since, Reason: "NodeNotReady", Message: "not Ready for 30s",
			Ready: "Unknown"},
		{Name: "unready", GPUs: 8, State: "NotReady", Ready: "False"},
		{Name: "cordoned", GPUs: 8, State: "Cordoned", Cordoned: true, Ready: "True"},
		{Name: "shut", GPUs: 8, State: "Outage", Message: "maintenance from 2030-01-02T15:00:00Z on", Ready: "True"},
		{Name: "doubted", GPUs: 8, State: "Suspect", Since: &since, Reason: "TwoOwners", Message: "two died", Ready: "True",
			Marks: against.Marks},
		{Name: "cleared", GPUs: 8, State: "OK", Ready: "True", Marks: against.Marks},
		{Name: "fine", GPUs: 8, State: "OK", Ready: "True"},
		{Name: "ready again", GPUs: 8, State: "OK", Ready: "True"},
		{Name: "tpus", GPUs: 4, State: "OK", Ready: "True"},
		{Name: "uncordoned", GPUs: 8, State: "OK", Ready: "True"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
