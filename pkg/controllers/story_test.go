package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// scene is what happens, and what one look at Run train writes then.
type scene struct {
	happens func(c *cluster)
	faults  []fault // while it is looked at
	wrote   []string
	fails   bool   // the look, so that another follows soon
	says    string // the Run's phase and message then; anything, if empty
}

// Requests and writes, as scenes name them.
var (
	thePods   = []string{"create pods train-0", "create pods train-1"}
	theLeases = []string{"update status leases train-0-pod1", "update status leases train-1-pod2"}
)

const (
	theService = "create services train"
	theStatus  = "update status runs train"
)

// starts has Run train start, both pods of it.
func starts(c *cluster) {
	if _, err := c.look(); err != nil {
		c.t.Fatal(err)
	}
	c.bind()
	c.become(corev1.PodRunning, 0, 1)
	if _, err := c.look(); err != nil {
		c.t.Fatal(err)
	}
}

// play plays scenes one after the other.
func play(t *testing.T, c *cluster, scenes []scene) {
	t.Helper()
	for i, s := range scenes {
		if s.happens != nil {
			s.happens(c)
			c.written()
		}
		c.see()
		c.faults = s.faults
		_, err := c.reconcile(t.Context(), train)
		c.faults = nil
		if diff := cmp.Diff(s.wrote, c.written()); diff != "" || (err != nil) != s.fails {
			t.Fatalf("scene %d: %v; written (-want +got):\n%s", i, err, diff)
		}
		if s.says == "" {
			continue
		}
		if run := c.run(); string(run.Status.Phase)+": "+run.Status.Message != s.says {
			t.Fatalf("scene %d: %s: %s, want %s", i, run.Status.Phase, run.Status.Message, s.says)
		}
	}
}

func all(of ...[]string) []string {
	var out []string
	for _, some := range of {
		out = append(out, some...)
	}
	return out
}

// TestARunFromItsBeginning has Run train made, by an API server that does not always do as it is told.
func TestARunFromItsBeginning(t *testing.T) {
	const refused = "Pending: the API server rejects the Run's pods: forbidden: quota exceeded"
	for name, scenes := range map[string][]scene{
		"as it should be": {
			{wrote: all([]string{theService}, thePods[:1])},
			{},
			{happens: (*cluster).bind, wrote: []string{theStatus}, says: "Running: bound 16 GPUs"},
			{happens: func(c *cluster) { c.become(corev1.PodRunning, 0, 1) }},
			{happens: func(c *cluster) { c.become(corev1.PodSucceeded, 0) }, wrote: []string{theLeases[0], theStatus}},
			{happens: func(c *cluster) { c.become(corev1.PodSucceeded, 1) }, wrote: all(theLeases[1:], []string{theStatus}),
				says: "Completed: all 2 pods completed"},
			{},
		},
		"its namespace has no quota for pods": {
			{faults: []fault{{on: "create pods", err: forbidden}}, wrote: []string{theService}, fails: true},
			{faults: []fault{{on: "create pods", err: forbidden}}, wrote: []string{theStatus}, fails: true, says: refused},
			{faults: []fault{{on: "create pods", err: forbidden}}, fails: true, says: refused},
			{wrote: thePods[:1]},
			{happens: (*cluster).bind, wrote: []string{theStatus}, says: "Running: bound 16 GPUs"},
		},
		"its namespace has quota for one pod": {
			{wrote: all([]string{theService}, thePods[:1])},
			{happens: func(c *cluster) { c.lead() }, faults: []fault{{on: "create pods", err: forbidden}}},
			{wrote: []string{"delete pods train-0", theStatus}, says: refused},
			{},
			{happens: func(c *cluster) { c.clock.Step(time.Minute); c.book.Advance(c.clock.Now()) }, wrote: thePods[:1]},
			{happens: func(c *cluster) { c.lead() }, wrote: thePods[1:]},
			{happens: (*cluster).bind, wrote: []string{theStatus}, says: "Running: bound 16 GPUs"},
		},
		"the Service is not stored, then is, and the answer is an error": {
			{faults: []fault{{on: "create services", err: broken500}}, fails: true},
			{faults: []fault{{on: "create services", err: broken500, stored: true}}, wrote: []string{theService}, fails: true},
			{wrote: thePods[:1]},
		},
		"this process does not lead for a while": {
			{faults: []fault{{on: "create", err: fenced}, {on: "update", err: fenced}}, fails: true},
			{wrote: all([]string{theService}, thePods[:1])},
		},
		"this process ends between the Service and the pods": {
			{faults: []fault{{on: "create pods", err: fenced}}, wrote: []string{theService}, fails: true},
			{happens: (*cluster).restart, wrote: thePods[:1]},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.submit()
			play(t, c, scenes)
		})
	}
}

// TestARunOfOnePod has Run train made where nothing that happens to one pod keeps another from being made.
func TestARunOfOnePod(t *testing.T) {
	stranger := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train-0", UID: "stranger"}}
	resource := corev1.SchemeGroupVersion.WithResource("pods")
	thePod := thePods[:1]
	for name, scenes := range map[string][]scene{
		"the pod is stored, and the answer is an error": {
			{faults: []fault{{on: "create pods", err: broken500, stored: true}}, wrote: thePod, fails: true},
			{},
		},
		"the pod is refused for a moment": {
			{faults: []fault{{on: "create pods", err: conflict}}, fails: true},
			{wrote: thePod},
		},
		"a pod of somebody's has the name": {
			{happens: func(c *cluster) {
				if err := c.kube.Tracker().Add(stranger.DeepCopy()); err != nil {
					c.t.Fatal(err)
				}
			}, fails: true},
			{wrote: []string{theStatus}, fails: true, says: "Pending: Pod train-0 exists and does not belong to this Run; " +
				"delete it, or give the Run another name"},
			{happens: func(c *cluster) {
				if err := c.kube.Tracker().Delete(resource, "ns", "train-0"); err != nil {
					c.t.Fatal(err)
				}
			}, wrote: thePod},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.submit(func(r *rqv1.Run) { r.Spec.Resources.TotalGPUs = 8 })
			play(t, c, scenes)
		})
	}
}

// TestARunThatIsToEnd has Run train end in one way or another, by an API server that does not always do as it is told.
// What says why comes first, then the pods go, and what they held is free when they are gone.
func TestARunThatIsToEnd(t *testing.T) {
	fails := func(c *cluster) { c.become(corev1.PodFailed, 0) }
	follows := func(c *cluster) { c.become(corev1.PodFailed, 1) } // its kubelet ends it where it is
	isDeleted := func(c *cluster) {
		if err := c.kinds.Delete(c.t.Context(), c.run()); err != nil {
			c.t.Fatal(err)
		}
	}
	rest := []string{"patch pods train-1"}
	both := []string{"delete pods train-0", "delete pods train-1"}
	for name, scenes := range map[string][]scene{
		"a rank fails": {
			{happens: fails, wrote: all([]string{theStatus}, rest, theLeases[:1]), says: "Failed: pod train-0 failed"},
			{happens: follows, wrote: theLeases[1:]},
			{},
		},
		"a rank fails while somebody writes the Run": {
			{happens: fails, faults: []fault{{on: theStatus, err: conflict}}, fails: true, says: "Running: bound 16 GPUs"},
			{wrote: all([]string{theStatus}, rest, theLeases[:1])},
		},
		"the status is stored, and the answer is an error": {
			{happens: fails, faults: []fault{{on: theStatus, err: broken500, stored: true}}, wrote: []string{theStatus},
				fails: true},
			{wrote: all(rest, theLeases[:1])},
		},
		"pods are not ended, then are, and the answers are errors": {
			{happens: fails, faults: []fault{{on: "patch pods", err: broken500}}, wrote: []string{theStatus}, fails: true},
			{faults: []fault{{on: "patch pods", err: broken500, stored: true}}, wrote: rest, fails: true},
			{happens: follows, wrote: theLeases},
		},
		"Leases are not closed, then are, and the answers are errors": {
			{happens: fails, faults: []fault{{on: "update status leases", err: broken500}},
				wrote: all([]string{theStatus}, rest), fails: true},
			{happens: follows, faults: []fault{{on: "update status leases", err: broken500, stored: true}}, wrote: theLeases,
				fails: true},
			{},
		},
		"this process ends after each write": {
			{happens: fails, faults: []fault{{on: "patch", err: fenced}}, wrote: []string{theStatus}, fails: true},
			{happens: (*cluster).restart, faults: []fault{{on: "update", err: fenced}}, wrote: rest, fails: true},
			{happens: func(c *cluster) { follows(c); c.restart() }, wrote: theLeases},
			{happens: (*cluster).restart, says: "Failed: pod train-0 failed"},
		},
		"it is deleted": {
			{happens: isDeleted, faults: []fault{{on: "get runs", err: broken500}}, fails: true},
			{wrote: both},
			{wrote: theLeases},
			{},
		},
		"it is deleted, and one of its name is made": {
			{happens: func(c *cluster) {
				isDeleted(c)
				c.submit(func(r *rqv1.Run) { r.UID = "second" })
			}, wrote: both},
			{wrote: theLeases, fails: true}, // its Service has the name until it is collected as well
			{happens: func(c *cluster) {
				resource := corev1.SchemeGroupVersion.WithResource("services")
				if err := c.kube.Tracker().Delete(resource, "ns", "train"); err != nil {
					c.t.Fatal(err)
				}
			}, wrote: all([]string{theService}, thePods[:1], []string{theStatus})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.submit()
			starts(c)
			play(t, c, scenes)
		})
	}
}

// TestARankWhoseNodeIsLost has a pod go only once the API server itself says that its node is lost, and its rank be
// made anew only once its Lease is closed.
func TestARankWhoseNodeIsLost(t *testing.T) {
	lost := nodeOf8("n0")
	lost.Spec.Unschedulable = true
	lost.Annotations = map[string]string{rqv1.AnnotationLost: "it is silent"}
	isSaid := func(c *cluster) { c.book.SetNode(lost.DeepCopy()) }
	isSo := func(c *cluster) {
		if err := c.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), lost.DeepCopy(), ""); err != nil {
			c.t.Fatal(err)
		}
	}
	anew := []string{"update status leases train-0-pod1", "create pods train-0", theStatus}
	c := newCluster(t)
	c.submit()
	starts(c)
	play(t, c, []scene{
		{happens: isSaid},
		{faults: []fault{{on: "get nodes", err: broken500}}, fails: true},
		{happens: isSo, wrote: []string{"delete pods train-0"}},
		{faults: []fault{{on: "update status leases", err: conflict}}, wrote: anew[1:]},
		{wrote: anew[:1]},
		{happens: func(c *cluster) { c.clock.Step(time.Minute) }, wrote: []string{"create poddisruptionbudgets train"},
			says: "Running: replacing 1 of 2 pods"},
	})
}

// TestNothingIsDecidedOnAnOldStatus has a rank fail and the watch of Runs tell nothing: that the Run has failed is
// known to the API server alone by then, and the cache has it run and lack a pod.
func TestNothingIsDecidedOnAnOldStatus(t *testing.T) {
	c := newCluster(t)
	c.submit()
	starts(c)
	gone := func(c *cluster) {
		if err := c.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "ns", "train-0"); err != nil {
			c.t.Fatal(err)
		}
	}
	play(t, c, []scene{
		{happens: func(c *cluster) {
			c.become(corev1.PodFailed, 0)
			c.see()
			c.runsHang = true
		}, wrote: all([]string{theStatus, "patch pods train-1"}, theLeases[:1])},
		{happens: gone, fails: true},
		{happens: func(c *cluster) {
			c.runsHang = false
			c.become(corev1.PodFailed, 1)
		}, wrote: theLeases[1:], says: "Failed: pod train-0 failed"},
	})
}

// TestABindingThatIsNotSeen has a gang be bound while the watch of its pods tells nothing, for longer than a gang may
// be bound in part: the Leases are seen, and the pods seem not to be bound. Nobody ends them for it.
func TestABindingThatIsNotSeen(t *testing.T) {
	for _, first := range []string{"train-0", "train-1"} {
		c := newCluster(t)
		c.submit()
		later := func(hangs bool) func(c *cluster) {
			return func(c *cluster) {
				c.podsHang = hangs
				c.bind()
				c.clock.Step(time.Hour)
			}
		}
		play(t, c, []scene{
			{wrote: all([]string{theService}, thePods[:1])},
			{happens: func(c *cluster) { c.lead() }, wrote: thePods[1:]},
			{},
			{happens: later(true)},
			{faults: []fault{{on: "get pods " + first, err: broken500}}, fails: first == "train-0"},
			{happens: func(c *cluster) { c.podsHang = false }, wrote: []string{theStatus}, says: "Running: bound 16 GPUs"},
		})
	}
}
