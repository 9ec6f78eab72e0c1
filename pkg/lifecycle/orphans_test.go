package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// stripped takes everything off a pod that tells of its Run but the name of it, as on one made before there was more.
func stripped(pod *corev1.Pod) {
	delete(pod.Labels, rqv1.LabelRunUID)
	pod.OwnerReferences = nil
}

func TestDecideOnPodsThatNoRunGoverns(t *testing.T) {
	deleted := func(edit func(*Observed)) Observed {
		return scene(func(o *Observed) {
			o.pods("n0", "n1", "n2", "n3")
			started(o)
			// The book has forgotten it, so nothing is known of its shape.
			o.Run.DeletionTimestamp, o.Run.Finalizers = &metav1.Time{Time: noon},
				[]string{metav1.FinalizerDeleteDependents, "example.com/audit"}
			o.Run.Status.Width = &rqv1.RunWidth{Min: 32, Max: 32, Desired: 32, Granted: 32, Allocated: 32}
			o.Demand = scene(nil).Demand.At(0)
			o.Demand.GPUsPerPod = 0
			edit(o)
		})
	}
	const all = "delete run-0; delete run-1; delete run-2; delete run-3"
	for name, test := range map[string]struct {
		observed Observed
		want     string
	}{
		"of a Run that a finalizer keeps": {deleted(func(*Observed) {}),
			all + "; Running: being deleted: its pods are ending"},
		"of one whose cuts are published": {deleted(func(o *Observed) { o.Cuts = []rank.Cut{cut(rqv1.CutLottery, nil)} }),
			all + "; Running: being deleted: its pods are ending"},
		"of one that has lost a node": {deleted(func(o *Observed) { o.Pods[1].Spec.NodeName = "gone" }),
			"delete run-1 if NodeLost; delete run-0; delete run-2; delete run-3; Running: being deleted: its pods are ending"},
		"of one that waits": {deleted(func(o *Observed) {
			o.Leases, o.Run.Status = nil, rqv1.RunStatus{Phase: rqv1.RunPending}
			for _, pod := range o.Pods {
				pod.Spec.NodeName, pod.Status.Phase = "", corev1.PodPending
			}
		}), all + "; Pending: being deleted: its pods are ending"},
		"of one that has failed": {
			deleted(func(o *Observed) { o.Run.Status = rqv1.RunStatus{Phase: rqv1.RunFailed, Message: "it broke"} }), all},
		"of one whose pods are gone": {deleted(func(o *Observed) { o.Pods, o.Leases = nil, nil }),
			"Running: deleted: it holds no GPUs; its object is kept by finalizers example.com/audit"},
		"and what has ended of a Run that is gone": {scene(func(o *Observed) {
			o.pods("n0 Succeeded", "n1 deleting", "", "")
			o.Run = nil
		}), "delete run-0 if RunGone"},
		"without references, of a Run that is gone": {scene(func(o *Observed) {
			o.pods("n0", "", "", "")
			o.Pods[0].OwnerReferences = nil
			o.Run = nil
		}), "delete run-0 if RunGone"},
		"that only their Leases tell of, of a Run that is gone": {scene(func(o *Observed) {
			o.pods("n0", "", "", "n3")
			stripped(o.Pods[0])
			stripped(o.Pods[1])
			o.leases(0, map[int]string{0: "n0"})
			o.Run = nil
		}), "delete run-0 if RunGone"},
		"that only their Leases tell of, of a Run that is there": {scene(func(o *Observed) {
			o.pods("n0", "n1", "n2", "n3")
			stripped(o.Pods[2])
			started(o)
		}), "delete run-2; Running: replacing 1 of 4 pods"},
		"that carry a Run's name and are nobody's": {scene(func(o *Observed) {
			o.pods("n0", "", "", "")
			stripped(o.Pods[0])
			o.Run = nil
		}), ""},
	} {
		if got := story(Decide(test.observed)); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
}

// What a Run that has been deleted says of itself stands once it is said.
func TestADeletedRunIsToldOnce(t *testing.T) {
	o := scene(func(o *Observed) {
		o.Run.DeletionTimestamp, o.Run.Finalizers = &metav1.Time{Time: noon}, []string{"example.com/audit"}
		o.Run.Status = rqv1.RunStatus{Phase: rqv1.RunRunning, Width: &rqv1.RunWidth{Allocated: 32, Pending: "Shrink to 16"},
			Funding: &rqv1.RunFundingStatus{OwnedGPUs: 32}, PendingReservation: "run-r0",
			AtRisk: []rqv1.RunRisk{{Reservation: "ns/other-r0"}}}
	})
	first := Decide(o).Status
	if first.Width.Allocated != 0 || first.Width.Pending != "" || first.Funding != nil || first.PendingReservation != "" ||
		first.AtRisk != nil {
		t.Errorf("it says that it holds or awaits something: %+v", first)
	}
	o.Run.Status = *first
	if got := story(Decide(o)); got != "" {
		t.Errorf("it is decided on again: %s", got)
	}
}

func TestOrphansNameTheirRun(t *testing.T) {
	o := scene(func(o *Observed) { o.pods("n0", "", "", ""); o.Pods[0].Labels[rqv1.LabelRunUID] = "earlier" })
	if d := Decide(o).Delete; len(d) != 1 || d[0].If != RunGone || d[0].Run != "earlier" {
		t.Errorf("deletes %+v, want the pod if Run earlier is gone", d)
	}
}
