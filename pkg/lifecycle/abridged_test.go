package lifecycle

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestTheDecisionOnAnAbridgedObservation is the one on all of it, also once it has been written down and read.
func TestTheDecisionOnAnAbridgedObservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawObserved(t)
		for _, pod := range o.Pods {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "side", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}, {Name: "main", ContainerID: "id",
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7}}}}
		}
		before, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		for name, less := range map[string]Observed{"plain": o.Plain(), "abridged": o.Abridged()} {
			written, err := json.Marshal(less)
			if err != nil {
				t.Fatal(err)
			}
			var read Observed
			if err := json.Unmarshal(written, &read); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(inShort(t, o), inShort(t, read)); diff != "" {
				t.Fatalf("the decision on what is %s (-want +got):\n%s", name, diff)
			}
		}
		if after, err := json.Marshal(o); err != nil || string(before) != string(after) {
			t.Fatalf("the observation has changed (%v):\n%s", err, cmp.Diff(string(before), string(after)))
		}
	})
}

// inShort is a decision and the write of the Reservation as text, with no more of the pods that are deleted than is
// decided on.
func inShort(t *rapid.T, o Observed) string {
	d := Decide(o)
	for i := range d.Delete {
		d.Delete[i].Pod = abridged(d.Delete[i].Pod)
		if about := d.Delete[i].About; about != nil {
			d.Delete[i].About = abridged(about)
		}
	}
	return text(t, d, Reserve(o))
}

// TestAbridged leaves nothing of what others write of pods but in the first.
func TestAbridged(t *testing.T) {
	o := scene(func(o *Observed) { o.pods("n0", "n1", "n2", "n3"); started(o) })
	noise := strings.Repeat("noise", 1000)
	fields := []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:status":{}}`)}}}
	o.Run.ManagedFields = fields
	for i, pod := range o.Pods {
		pod.ManagedFields, o.Leases[i].ManagedFields = fields, fields
		pod.Annotations = map[string]string{"example.com/note": noise}
		pod.Labels["example.com/note"] = noise
		pod.Spec.Containers[0].Image = noise
	}
	o.Reservations = []*rqv1.Reservation{{ObjectMeta: metav1.ObjectMeta{ManagedFields: fields}}}
	for name, c := range map[string]struct {
		o             Observed
		noise, fields int // how often they are in it
	}{
		"all of it": {o, 3 * 4, 1 + 4 + 4 + 1},
		"plain":     {o.Plain(), 3 * 4, 0},
		"abridged":  {o.Abridged(), 3, 0},
	} {
		written, err := json.Marshal(c.o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]int{c.noise, c.fields}, []int{strings.Count(string(written), noise),
			strings.Count(string(written), "kubelet")}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
