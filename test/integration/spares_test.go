package integration

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// withSpares has so many GPUs stand by in each group.
func withSpares(gpus int32) func(*rqv1.Run) {
	return func(r *rqv1.Run) { r.Spec.SparesPerGroup = &gpus }
}

// succeed has every active pod of a Run end well.
func (s *site) succeed(run string) {
	s.t.Helper()
	end := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"pod-complete.stage.kwok.x-k8s.io/delay":"0s"}}}`))
	for _, pod := range s.podsOf(run) {
		if pod.Labels[rqv1.LabelRole] != string(rqv1.RoleActive) {
			continue
		}
		if err := s.api.Patch(s.t.Context(), &pod, end); err != nil {
			s.t.Fatal(err)
		}
	}
}
