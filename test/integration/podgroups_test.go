package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// The two kinds of PodGroups.
var (
	native       = schedulingv1beta1.SchemeGroupVersion
	coscheduling = schema.GroupVersion{Group: "scheduling.x-k8s.io", Version: "v1alpha1"}
)

// TestPodGroups: gangs by the objects of both kinds of PodGroups, on an API server that serves both.
func TestPodGroups(t *testing.T) {
	t.Parallel()
	c, err := openCluster(controlplane.Options{Dir: t.TempDir(), Scheduler: true, Kwok: true, PodGroups: true,
		Config: schedulerConfig(t, t.TempDir(), nil, map[string]any{"gangDeadline": "30s"})})
	if err != nil {
		t.Fatalf("starting a cluster: %v", err)
	}
	t.Cleanup(c.Stop)
	t.Run("native", func(t *testing.T) { lifeOfPodGroups(newSite(t, c, 2, 2, 64), native) })
	t.Run("coscheduling", func(t *testing.T) { lifeOfPodGroups(newSite(t, c, 2, 2, 64), coscheduling) })
	for _, kind := range []schema.GroupVersion{native, coscheduling} {
		t.Run("lowered-"+kind.Version, func(t *testing.T) { loweredPodGroup(newSite(t, c, 1, 2, 64), kind) })
	}
	t.Run("topology", func(t *testing.T) { nearPodGroup(newSite(t, c, 2, 2, 64)) })
	t.Run("hostile", func(t *testing.T) { hostilePodGroups(newSite(t, c, 1, 4, 64)) })
}

// lifeOfPodGroups: a gang waits until it is whole, then starts as one; one that does not fit waits and holds nothing;
// a pod that comes when all are there waits for the place of one that is lost, and for nothing else; in the end nothing
// is held.
func lifeOfPodGroups(s *site, kind schema.GroupVersion) {
	t := s.t
	s.spends()
	gang := s.podGroup(kind, "gang", 2, "")
	run := s.groupRun(kind.Group, "PodGroup", "gang")
	s.member(kind, "gang", "a")
	s.groupTold(gang, metav1.ConditionFalse, "waiting for 1 more of the group's 2 pods")
	s.podTold("a", "waiting for 1 more of the group's 2 pods")
	s.member(kind, "gang", "b")
	s.await(run, rqv1.RunRunning, "bound 16 GPUs")
	s.groupTold(gang, metav1.ConditionTrue, "has started")
	s.paidBy(run, map[string]int32{string(s.owner) + "/all own Active": 16})
	if leases := len(s.leasesOf(run)); leases != 2 {
		t.Errorf("2 pods have %d Leases", leases)
	}

	large := s.podGroup(kind, "large", 3, "")
	waits := s.groupRun(kind.Group, "PodGroup", "large")
	for _, pod := range []string{"x", "y", "z"} {
		s.member(kind, "large", pod)
	}
	s.await(waits, rqv1.RunPending, "short by 8")
	s.groupTold(large, metav1.ConditionFalse, "short by 8")
	s.podTold("x", "short by 8")
	if err := s.holdsNothing(waits); err != nil {
		t.Error(err)
	}
	s.submit("other", 16) // has room, beside the gang that has none
	s.await("other", rqv1.RunRunning, "bound 16 GPUs")

	s.member(kind, "gang", "c")
	s.podTold("c", "can grow, or gets the place of one that is lost")
	s.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "a"}})
	s.bound("c")
	s.await(run, rqv1.RunRunning, "")
	s.groupTold(gang, metav1.ConditionTrue, "has started")
	s.settled()
	s.removeRun("other")
	lost, _, err := s.scheduled("b")
	if err != nil {
		t.Fatal(err)
	}
	s.strike(lost)
	s.member(kind, "gang", "d")
	s.bound("d")
	if got := s.closures(run); got[rqv1.ClosedNodeFailure] != 1 || got[""] != 2 {
		t.Errorf("Leases closed as %v, want one as NodeFailure and two that are open", got)
	}
	s.settled()
	for _, pod := range []string{"c", "d", "x", "y", "z"} {
		s.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: pod}})
	}
	s.delete(gang)
	s.delete(large)
	s.awaitGone(run, waits)
}

// loweredPodGroup: a gang waits for room, and starts at once when its PodGroup asks for less: before a Run is over that
// began to run before the gang waited, and lasts less long than the scheduler leaves such a gang alone if it is told
// nothing.
func loweredPodGroup(s *site, kind schema.GroupVersion) {
	s.spends()
	s.submit("clock", 4, func(r *rqv1.Run) {
		r.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: 50 * time.Second}}
	})
	s.await("clock", rqv1.RunRunning, "bound 4 GPUs")
	group := s.podGroup(kind, "gang", 2, "")
	for _, pod := range []string{"a", "b"} {
		s.member(kind, "gang", pod)
	}
	gang := s.groupRun(kind.Group, "PodGroup", "gang")
	s.await(gang, rqv1.RunPending, "short by")
	lower := `{"spec":{"minMember":1}}`
	if kind == native {
		lower = `{"spec":{"schedulingPolicy":{"gang":{"minCount":1}}}}`
	}
	if err := s.api.Patch(s.t.Context(), group, client.RawPatch(types.MergePatchType, []byte(lower))); err != nil {
		s.t.Fatal(err)
	}
	s.await(gang, rqv1.RunRunning, "bound 8 GPUs")
	if err := is(s.await("clock", rqv1.RunRunning, ""), rqv1.RunRunning, "bound 4 GPUs"); err != nil {
		s.t.Errorf("the gang starts after it: %v", err)
	}
	s.settled()
	for _, pod := range []string{"a", "b"} {
		s.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: pod}})
	}
	s.delete(group)
	s.removeRun("clock")
	s.awaitGone(gang)
}

// nearPodGroup: a gang that is to lie in one domain does not start with room in two, and a pod that joins it later
// waits for room in that domain, whatever is free elsewhere.
func nearPodGroup(s *site) {
	s.spends()
	for _, domain := range []string{"d0", "d1"} {
		s.submit("in-"+domain, 8, inPods(8), s.on(domain))
		s.await("in-"+domain, rqv1.RunRunning, "bound 8 GPUs")
	}
	near := s.podGroup(native, "near", 2, "fabric.domain")
	for _, pod := range []string{"a", "b"} {
		s.member(native, "near", pod)
	}
	run := s.groupRun(native.Group, "PodGroup", "near")
	s.await(run, rqv1.RunPending, "short by 8")
	s.groupTold(near, metav1.ConditionFalse, "short by 8")
	if err := s.holdsNothing(run); err != nil {
		s.t.Error(err)
	}
	s.removeRun("in-d1")
	s.await(run, rqv1.RunRunning, "bound 16 GPUs")
	for _, lease := range s.leasesOf(run) {
		if domain := s.domainOf(lease.Node()); domain != s.namespace+"-d1" {
			s.t.Errorf("it is in %s", domain)
		}
	}
	s.member(native, "near", "c")
	s.podTold("c", "another pod starts when Run "+run+" can grow")
	s.settled()
	if node, _, err := s.scheduled("c"); err != nil || node != "" {
		s.t.Errorf("a pod that its domain has no room for is on %q: %v", node, err)
	}
}

// hostilePodGroups: what is wrong with a group, or with a pod that names one, is told and hurts no other.
func hostilePodGroups(s *site) {
	s.spends()
	elsewhere := namedSite(s.t, s.cluster, s.namespace+"-far", 0, 0, 0)
	elsewhere.podGroup(native, "far", 1, "")
	s.member(native, "far", "astray")
	s.podTold("astray", "PodGroup/far of scheduling.k8s.io, which does not exist in namespace "+s.namespace)

	for _, kind := range []schema.GroupVersion{native, coscheduling} {
		s.podGroup(kind, "same", 1, "")
		s.member(kind, "same", "one-"+kind.Version)
	}
	for _, kind := range []schema.GroupVersion{native, coscheduling} {
		s.await(s.groupRun(kind.Group, "PodGroup", "same"), rqv1.RunRunning, "bound 8 GPUs")
	}
	s.member(native, "same", "forged", func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{rqv1.AnnotationOwner: "org:somebody"}
	})
	s.podTold("forged", string(s.owner)+" pays for PodGroup/same")

	s.podTold(s.member(native, "huge", "few", func(*corev1.Pod) { s.podGroup(native, "huge", 2147483647, "") }),
		"and a Run may have 1000000 at most")
	racked := s.podGroup(native, "racked", 1, "rack")
	s.podTold(s.member(native, "racked", "r"), "asks for one domain of rack")
	s.groupTold(racked, metav1.ConditionFalse, "asks for one domain of rack")

	// Pods may be there before their PodGroup, and more than it needs: the others start as there is room.
	for _, pod := range []string{"two-a", "two-b", "two-c"} {
		s.member(native, "two", pod)
	}
	s.podTold("two-a", "which does not exist")
	s.podGroup(native, "two", 2, "")
	run := s.groupRun(native.Group, "PodGroup", "two")
	s.await(run, rqv1.RunRunning, "bound 16 GPUs")
	s.addNodes("d1", 1)
	s.await(run, rqv1.RunRunning, "grew to 24 GPUs")
	s.settled()
}

// podGroup makes a PodGroup of a kind that is to start with so many pods, all in one domain of a key if there is one.
func (s *site) podGroup(kind schema.GroupVersion, name string, least int64, key string) *unstructured.Unstructured {
	s.t.Helper()
	spec := map[string]any{"minMember": least}
	if kind == native {
		spec = map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": least}}}
		if key != "" {
			spec["schedulingConstraints"] = map[string]any{"topology": []any{map[string]any{"key": key}}}
		}
	}
	group := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	group.SetGroupVersionKind(kind.WithKind("PodGroup"))
	group.SetNamespace(s.namespace)
	group.SetName(name)
	s.create(group)
	return group
}

// member makes a pod of 8 GPUs in a PodGroup of a kind.
func (s *site) member(kind schema.GroupVersion, of, name string, changes ...func(*corev1.Pod)) string {
	s.t.Helper()
	pod := s.foreignPod(name, corev1.ResourceList{gpuResource: resource.MustParse("8")})
	if kind == native {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(of)}
	} else {
		pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": of}
	}
	for _, change := range changes {
		change(pod)
	}
	s.create(pod)
	return name
}

// groupTold waits until a PodGroup of the native kind says whether it has been scheduled, in some words.
func (s *site) groupTold(group *unstructured.Unstructured, status metav1.ConditionStatus, words string) {
	s.t.Helper()
	if group.GroupVersionKind().GroupVersion() != native {
		return // what it says is its own controller's to write
	}
	reason := map[metav1.ConditionStatus]string{metav1.ConditionTrue: "Scheduled", metav1.ConditionFalse: "Unschedulable"}
	eventually(s.t, "PodGroup "+group.GetName(), func() error {
		is := &schedulingv1beta1.PodGroup{}
		if err := s.api.Get(s.t.Context(), client.ObjectKeyFromObject(group), is); err != nil {
			return err
		}
		c := meta.FindStatusCondition(is.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
		if c == nil || !strings.Contains(c.Message, words) {
			return fmt.Errorf("it says %+v, not %q", is.Status.Conditions, words)
		}
		if diff := cmp.Diff(metav1.Condition{Type: c.Type, Status: status, Reason: reason[status], Message: c.Message,
			ObservedGeneration: is.Generation, LastTransitionTime: c.LastTransitionTime}, *c); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

// podTold waits until a pod that is on no node is told why, by its condition and by an event. That it is Unschedulable,
// for which autoscalers add nodes, is said where it is short of GPUs alone.
func (s *site) podTold(name, words string) {
	s.t.Helper()
	short := slices.ContainsFunc([]string{"short by", "fit now", "at most", "can grow"}, func(says string) bool {
		return strings.Contains(words, says)
	})
	eventually(s.t, "pod "+name, func() error {
		node, why, err := s.scheduled(name)
		if err != nil || node != "" || strings.HasPrefix(why, "Unschedulable: ") && !short || !strings.Contains(why, words) {
			return errors.Join(err, fmt.Errorf("it is on %q, told %q, not %q", node, why, words))
		}
		events := &corev1.EventList{}
		if err := s.api.List(s.t.Context(), events, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == name && strings.Contains(e.Message, words) {
				return nil
			}
		}
		return fmt.Errorf("no event tells it %q", words)
	})
}

// bound waits until a pod has a node.
func (s *site) bound(name string) {
	s.t.Helper()
	eventually(s.t, "pod "+name, func() error {
		node, why, err := s.scheduled(name)
		if err == nil && node == "" {
			err = fmt.Errorf("it waits: %s", why)
		}
		return err
	})
}
