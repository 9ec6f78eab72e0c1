package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// closures counts the closed Leases of a Run by reason; open ones count as "".
func (s *site) closures(run string) map[rqv1.ClosureReason]int {
	s.t.Helper()
	out := map[rqv1.ClosureReason]int{}
	for _, lease := range s.leasesOf(run) {
		out[lease.Status.ClosureReason]++
	}
	return out
}

// TestRunStarts looks at all that a user sees of a Run that runs.
func TestRunStarts(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 4, 4, 128)
	s.submit("wide", 96, inGroups(32))
	run := s.await("wide", rqv1.RunRunning, "bound 96 GPUs")
	want := rqv1.RunStatus{
		ObservedGeneration: 1, Phase: rqv1.RunRunning, Message: "bound 96 GPUs",
		Width:   &rqv1.RunWidth{Min: 96, Max: 96, Desired: 96, Granted: 96, Allocated: 96},
		Funding: &rqv1.RunFundingStatus{OwnedGPUs: 96},
	}
	got := *run.Status.DeepCopy()
	got.Conditions, got.Ready = nil, 0 // the latter is told with anything else, or after a while
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !meta.IsStatusConditionTrue(run.Status.Conditions, rqv1.ConditionStarted) ||
		meta.IsStatusConditionTrue(run.Status.Conditions, rqv1.ConditionFinished) {
		t.Errorf("conditions %+v", run.Status.Conditions)
	}
	for _, lease := range s.leasesOf("wide") {
		want := rqv1.LeaseSpec{
			Owner: s.owner, RunRef: rqv1.LeaseRunRef{Name: "wide", Namespace: s.namespace, UID: run.UID},
			GroupIndex: lease.Spec.GroupIndex, Slice: rqv1.LeaseSlice{
				Role: rqv1.RoleActive, Nodes: []rqv1.NodeGPUs{{Name: lease.Node(), GPUs: 8}},
			},
			Payer:          rqv1.LeasePayer{Budget: s.namespace, Owner: s.owner, Relation: rqv1.RelationOwn, Rate: "1"},
			PaidByEnvelope: "all", Flavor: s.flavor,
			Reason: rqv1.ReasonStart, Start: lease.Spec.Start,
		}
		if diff := cmp.Diff(want, lease.Spec); diff != "" {
			t.Errorf("Lease %s: %s", lease.Name, diff)
		}
	}
	s.settled()
}

// TestRunCompletes has pods succeed: the Run completes, and its Leases outlive it.
func TestRunCompletes(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 16)
	s.submit("short", 16, inPods(4), annotated("pod-complete.stage.kwok.x-k8s.io/delay", "1s"))
	run := s.await("short", rqv1.RunCompleted, "all 4 pods completed")
	if !meta.IsStatusConditionTrue(run.Status.Conditions, rqv1.ConditionFinished) || run.Status.Width.Allocated != 0 {
		t.Errorf("status %+v", run.Status)
	}
	s.settled()
	s.removeRun("short")
	s.awaitGone("short")
	if diff := cmp.Diff(map[rqv1.ClosureReason]int{rqv1.ClosedCompleted: 4}, s.closures("short")); diff != "" {
		t.Error(diff)
	}
}

// TestRunFails has one pod of several fail: the others end, the Run says which failed and how, and all Leases close.
func TestRunFails(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 16)
	s.submit("doomed", 16, inPods(4))
	s.await("doomed", rqv1.RunRunning, "bound 16 GPUs")
	pod := s.podsOf("doomed")["doomed-2"]
	fail := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"pod-fail.stage.kwok.x-k8s.io/delay":"0s"}}}`))
	if err := s.api.Patch(t.Context(), &pod, fail); err != nil {
		t.Fatal(err)
	}
	s.await("doomed", rqv1.RunFailed, "pod doomed-2 failed: container pause exited with code 1")
	s.settled()
	if diff := cmp.Diff(map[rqv1.ClosureReason]int{rqv1.ClosedFailed: 4}, s.closures("doomed")); diff != "" {
		t.Error(diff)
	}
	s.submit("next", 16)
	s.await("next", rqv1.RunRunning, "bound 16 GPUs")
}

// TestRankIdentity compares what every rank is told of itself and of the others, and looks the ranks up in the Service.
func TestRankIdentity(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 2, 1, 16)
	s.submit("ranks", 8, inPods(2), inGroups(4), func(r *rqv1.Run) {
		template(r).Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MASTER_PORT", Value: "4242"}}
	})
	run := s.await("ranks", rqv1.RunRunning, "bound 8 GPUs")
	pods := s.podsOf("ranks")
	for i := range 4 {
		pod := pods[fmt.Sprintf("ranks-%d", i)]
		env := environment(&pod)
		want := map[string]string{
			"RANK": fmt.Sprint(i), "WORLD_SIZE": "4", "MASTER_ADDR": "ranks-0.ranks", "MASTER_PORT": "4242",
			"PET_NNODES": "4", "PET_NODE_RANK": fmt.Sprint(i), "PET_NPROC_PER_NODE": "2",
			"PET_MASTER_ADDR": "ranks-0.ranks", "PET_MASTER_PORT": "29500",
			"PET_RDZV_ENDPOINT": "ranks-0.ranks:29500", "PET_RDZV_ID": string(run.UID),
			"JOBTREE_RUN": "ranks", "JOBTREE_GROUP_INDEX": fmt.Sprint(i / 2), "JOBTREE_EPOCH": "0",
			"TORCHELASTIC_RESTART_COUNT": "0",
		}
		if diff := cmp.Diff(want, env); diff != "" {
			t.Errorf("rank %d: %s", i, diff)
		}
		labels := map[string]string{
			rqv1.LabelRun: "ranks", rqv1.LabelIndex: fmt.Sprint(i), rqv1.LabelGroupIndex: fmt.Sprint(i / 2),
			rqv1.LabelCohort: "0", rqv1.LabelRole: "Active", rqv1.LabelEpoch: "0",
			rqv1.LabelRunUID: string(run.UID),
		}
		if diff := cmp.Diff(labels, pod.Labels); diff != "" {
			t.Errorf("rank %d: %s", i, diff)
		}
		if owner := metav1.GetControllerOf(&pod); owner == nil || owner.UID != run.UID {
			t.Errorf("rank %d is owned by %+v", i, owner)
		}
	}
	eventually(t, "the Service is to know every rank by name", func() error { return s.resolves("ranks", 4) })
	s.settled()
}

// environment is what a pod's first container finds in its environment, with what stands in the pod's annotations.
func environment(pod *corev1.Pod) map[string]string {
	env := map[string]string{}
	for _, variable := range pod.Spec.Containers[0].Env {
		env[variable.Name] = variable.Value
		if from := variable.ValueFrom; from != nil && from.FieldRef != nil {
			path := strings.TrimPrefix(from.FieldRef.FieldPath, "metadata.annotations['")
			env[variable.Name] = pod.Annotations[strings.TrimSuffix(path, "']")]
		}
	}
	return env
}

// resolves is an error unless a headless Service has an address for each of a Run's ranks, under the rank's name.
func (s *site) resolves(run string, ranks int) error {
	service := &corev1.Service{}
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: run}, service); err != nil {
		return err
	}
	if service.Spec.ClusterIP != corev1.ClusterIPNone || !service.Spec.PublishNotReadyAddresses {
		return fmt.Errorf("Service %+v", service.Spec)
	}
	var found discoveryv1.EndpointSliceList
	err := s.api.List(s.t.Context(), &found, client.InNamespace(s.namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: run})
	if err != nil {
		return err
	}
	var names, want []string
	for _, slice := range found.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Hostname != nil && len(endpoint.Addresses) > 0 {
				names = append(names, *endpoint.Hostname)
			}
		}
	}
	for i := range ranks {
		want = append(want, fmt.Sprintf("%s-%d", run, i))
	}
	if slices.Sort(names); !slices.Equal(names, want) {
		return fmt.Errorf("it knows %s", strings.Join(names, ", "))
	}
	return nil
}
