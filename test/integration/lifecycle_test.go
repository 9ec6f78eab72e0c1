package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
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

// TestRanksAreFoundByName looks all ranks of a Run up in its Service.
func TestRanksAreFoundByName(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 2, 1, 16)
	s.submit("ranks", 8, inPods(2), inGroups(4), func(r *rqv1.Run) { template(r) })
	s.await("ranks", rqv1.RunRunning, "bound 8 GPUs")
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
