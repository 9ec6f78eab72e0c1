package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// keptBy is a finalizer that nobody takes off.
const keptBy = "example.com/audit"

// TestDeletedRunsGiveBackTheirGPUs deletes Runs in all ways that would keep their pods, if it were for the garbage
// collector alone. The next Run starts all the same.
func TestDeletedRunsGiveBackTheirGPUs(t *testing.T) {
	t.Parallel()
	propagation := func(how metav1.DeletionPropagation) func(*site, *rqv1.Run) {
		return func(s *site, run *rqv1.Run) { s.delete(run, client.PropagationPolicy(how)) }
	}
	references := func(to ...metav1.OwnerReference) func(*site, *rqv1.Run) {
		return func(s *site, run *rqv1.Run) {
			s.refer(run.Name, to)
			s.delete(run)
		}
	}
	for name, remove := range map[string]func(*site, *rqv1.Run){
		"kept": func(s *site, run *rqv1.Run) {
			edit(s, run, func(r *rqv1.Run) { r.Finalizers = append(r.Finalizers, keptBy) })
			s.delete(run)
		},
		"foreground": propagation(metav1.DeletePropagationForeground),
		"orphan":     propagation(metav1.DeletePropagationOrphan),
		"stripped":   references(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, liveCluster(t), 1, 2, 100)
			s.submit("first", 8, inPods(4), withSpares(4))
			run := s.await("first", rqv1.RunRunning, "bound 8 GPUs")
			s.submit("next", 16)
			s.await("next", rqv1.RunPending, "short by")
			remove(s, run)
			s.await("next", rqv1.RunRunning, "bound 16 GPUs")
			s.awaitNoPods("first")
			if diff := cmp.Diff(map[rqv1.ClosureReason]int{rqv1.ClosedDeleted: 3}, s.closures("first")); diff != "" {
				t.Error(diff)
			}
			if name == "kept" {
				s.await("first", rqv1.RunRunning, "deleted: it holds no GPUs; its object is kept by finalizers "+keptBy)
				s.settled()
				edit(s, run, func(r *rqv1.Run) { r.Finalizers = nil })
			}
			s.awaitGone("first")
			s.settled()
		})
	}
}

// refer gives the pods of a Run other owners, as the garbage collector may.
func (s *site) refer(run string, owners []metav1.OwnerReference) {
	s.t.Helper()
	as := rest.CopyConfig(s.AdminConfig())
	as.Impersonate = users["collector"]
	collector, err := client.New(as, client.Options{Scheme: s.api.Scheme()})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, pod := range s.podsOf(run) {
		changed := pod.DeepCopy()
		changed.OwnerReferences = owners
		if err := collector.Patch(s.t.Context(), changed, client.MergeFrom(&pod)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestPodsWithoutReferencesStay strips the references of a running Run's pods: they are its own as before.
func TestPodsWithoutReferencesStay(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 100)
	s.submit("plain", 16, inPods(8))
	s.await("plain", rqv1.RunRunning, "bound 16 GPUs")
	before := s.podsOf("plain")
	s.refer("plain", nil)
	// One of them goes for its own reasons, and is replaced beside the other.
	lost := before["plain-1"]
	s.delete(&lost)
	eventually(t, "rank 1 is to run again", func() error {
		pod := s.podsOf("plain")["plain-1"]
		if pod.UID == lost.UID || pod.Spec.NodeName == "" {
			return fmt.Errorf("pod %s is on node %q", pod.UID, pod.Spec.NodeName)
		}
		return nil
	})
	if was, is := before["plain-0"].UID, s.podsOf("plain")["plain-0"].UID; was != is {
		t.Errorf("rank 0 had pod %s and has %s", was, is)
	}
	s.settled()
}

// TestGracePeriodsAreCapped runs a template that asks for a year to end. Its pods have the scheduler's ten minutes, by
// whatever they are ended, and somebody who gives one of them a year gives it no more.
func TestGracePeriodsAreCapped(t *testing.T) {
	t.Parallel()
	const year = int64(31536000)
	s := newSite(t, liveCluster(t), 1, 2, 100)
	s.submit("slow", 16, inPods(8), annotated("pod-delete.stage.kwok.x-k8s.io/delay", "20s"), func(r *rqv1.Run) {
		asked := year
		r.Spec.Template.Spec.TerminationGracePeriodSeconds = &asked
		r.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: 10 * time.Second}}
	})
	run := s.await("slow", rqv1.RunRunning, "bound 16 GPUs")
	if c := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionGraceCapped); c == nil ||
		c.Status != metav1.ConditionTrue {
		t.Errorf("conditions %+v", run.Status.Conditions)
	}
	for name, pod := range s.podsOf("slow") {
		if grace := pod.Spec.TerminationGracePeriodSeconds; grace == nil || *grace != 600 {
			t.Errorf("pod %s is made with %v seconds to end, want 600", name, grace)
		}
	}
	one := s.podsOf("slow")["slow-1"]
	s.delete(&one, client.GracePeriodSeconds(year))
	s.given("slow-1", 600)
	s.await("slow", rqv1.RunFailed, "ran for its maxDuration")
	eventually(t, "slow-1 is to be gone, and slow-0 to have ended where it was", func() error {
		pods := s.podsOf("slow")
		pod := pods["slow-0"]
		if len(pods) != 1 || pod.Status.Phase != corev1.PodFailed || pod.DeletionTimestamp != nil {
			return fmt.Errorf("there are %d pods, and slow-0 is %s", len(pods), pod.Status.Phase)
		}
		return nil
	})
}

// given waits until a pod terminates with so many seconds to end.
func (s *site) given(name string, seconds int64) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("pod %s is to have %d seconds to end", name, seconds), func() error {
		pod := &corev1.Pod{}
		if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, pod); err != nil {
			return err
		}
		if given := pod.DeletionGracePeriodSeconds; given == nil || *given != seconds {
			return fmt.Errorf("it has %v", given)
		}
		return nil
	})
}

// awaitNoPods waits until a Run has no pods any more.
func (s *site) awaitNoPods(run string) {
	s.t.Helper()
	eventually(s.t, "the pods of "+run+" are to be gone", func() error {
		if pods := s.podsOf(run); len(pods) > 0 {
			return fmt.Errorf("%d are left", len(pods))
		}
		return nil
	})
}

// TestANamespaceIsPaidForUntilItsPodsAreGone deletes a namespace with a Run whose pods take a while to end: what they
// hold is charged until they are gone, because Kubernetes deletes the pods of a namespace before its GPU leases.
func TestANamespaceIsPaidForUntilItsPodsAreGone(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 100)
	doomed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-doomed"}}
	s.create(doomed)
	run := s.run("last", 8, annotated("pod-delete.stage.kwok.x-k8s.io/delay", "8s"), func(r *rqv1.Run) {
		grace := int64(30)
		r.Namespace, r.Spec.Template.Spec.TerminationGracePeriodSeconds = doomed.Name, &grace
	})
	eventually(t, "the Run is to be bound", func() error {
		if err := s.api.Create(t.Context(), run.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		got := &rqv1.Run{}
		if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(run), got); err != nil {
			return err
		}
		return is(got, rqv1.RunRunning, "bound 8 GPUs")
	})
	left := func(list client.ObjectList) int {
		if err := s.api.List(t.Context(), list, client.InNamespace(doomed.Name)); err != nil {
			t.Fatal(err)
		}
		return meta.LenList(list)
	}
	counts := func(gpus int32) error {
		budget := &rqv1.Budget{}
		if err := s.api.Get(t.Context(), types.NamespacedName{Name: s.namespace}, budget); err != nil {
			return err
		}
		if budget.Status.UsedGPUs != gpus {
			return fmt.Errorf("the Budget counts %d GPUs", budget.Status.UsedGPUs)
		}
		return nil
	}
	eventually(t, "the Run is to be charged", func() error { return counts(8) })
	s.delete(doomed)
	lasted := false
	eventually(t, "the budget is to be free", func() error {
		charged := counts(8)
		// The pods are looked at last: those that are there now were there when the Budget was read.
		switch pods := left(&corev1.PodList{}); {
		case pods > 0 && charged == nil:
			lasted = true
			return fmt.Errorf("%d pods are left", pods)
		case pods > 0:
			t.Fatalf("%d pods are left: %v", pods, charged)
		}
		return counts(0)
	})
	if !lasted {
		t.Error("the pods were gone at once")
	}
	row := mustCommand(t, s.ControlPlane, "", "get budgets.rq.davidlangworthy.io --no-headers "+s.namespace)
	if diff := cmp.Diff([]string{s.namespace, string(s.owner), "0", "100", "0"}, strings.Fields(row)[:5]); diff != "" {
		t.Errorf("name, owner, used, free and overdraft (-want +got):\n%s", diff)
	}
}

// awaitGone waits until Runs and their pods are gone and their Leases closed.
func (s *site) awaitGone(runs ...string) {
	s.t.Helper()
	for _, run := range runs {
		eventually(s.t, "Run "+run+" is to be gone", func() error {
			if _, err := s.get(run); err == nil {
				return fmt.Errorf("it is there")
			}
			if pods := s.podsOf(run); len(pods) > 0 {
				return fmt.Errorf("%d pods are left", len(pods))
			}
			for _, lease := range s.leasesOf(run) {
				if !lease.Status.Closed {
					return fmt.Errorf("Lease %s is open", lease.Name)
				}
			}
			return nil
		})
	}
}
