package integration

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// swapWrites are the writes of a swap, by the name of the step that the scheduler comes to before it.
var swapWrites = map[string]string{
	"recorded": `what == "pods/" && request.operation == "DELETE" && oldObject.metadata.labels["` + rqv1.LabelRole +
		`"] == "Active"`,
	"gone": `what == "leases/status" && object.status.closureReason == "NodeFailure"`,
	"replaced": `what == "pods/" && request.operation == "DELETE" && oldObject.metadata.labels["` + rqv1.LabelRole +
		`"] == "Spare"`,
	"left":   `what == "leases/status" && object.status.closureReason == "Swap"`,
	"freed":  `what == "leases/" && request.operation == "CREATE"`,
	"leased": `what == "pods/binding"`,
	"bound":  `what == "runs/status" && object.status.message.contains("swapped")`,
}

// swaps tells how far the swap of rank 1 to the spare has not come.
func (s *site) swaps(before map[string]corev1.Pod, step string) error {
	w, err := s.look(s.t.Context())
	if err != nil {
		return err
	}
	closed := map[string]bool{} // by the UID of the Lease's pod
	leased := map[string]bool{}
	for i := range w.leases {
		pod := w.leases[i].Labels["rq.davidlangworthy.io/pod-uid"]
		leased[pod], closed[pod] = true, w.leases[i].Status.Closed
	}
	lost, spare := before["guarded-1"], before["guarded-s0"]
	var rank corev1.Pod
	spareThere := false
	for i := range w.pods {
		if w.pods[i].Name == lost.Name {
			rank = w.pods[i]
		}
		spareThere = spareThere || w.pods[i].UID == spare.UID && w.pods[i].DeletionTimestamp == nil
	}
	gone, made := rank.UID != lost.UID, rank.UID != lost.UID && rank.UID != ""
	conditions := map[string]bool{
		"recorded": w.nodes[lost.Spec.NodeName].Spec.Unschedulable && !gone,
		"gone":     made && !closed[string(lost.UID)],
		"replaced": made && closed[string(lost.UID)] && spareThere,
		"left":     made && !spareThere && !closed[string(spare.UID)],
		"freed":    closed[string(spare.UID)] && !leased[string(rank.UID)],
		"leased":   leased[string(rank.UID)] && rank.Spec.NodeName == "",
		"bound":    rank.Spec.NodeName != "" && made,
	}
	if run := w.runs["guarded"]; !conditions[step] || run.Status.Message == swappedMessage {
		return fmt.Errorf("%s has not come to %q: Run %s (%s), pod %s on %q, spare there: %v", s.namespace, step,
			run.Status.Phase, run.Status.Message,
			rank.UID, rank.Spec.NodeName, spareThere)
	}
	return nil
}

// TestKillBetweenStepsOfASwap kills the scheduler when it has come to each step of a swap and cannot take the next one,
// as many sites as there are steps at once: the rank takes the place of the spare all the same, once.
func TestKillBetweenStepsOfASwap(t *testing.T) {
	t.Parallel()
	c := ownCluster(t, withoutElection, map[string]any{"gangDeadline": "10m"})
	installHolds(t, c, swapWrites)
	(&site{cluster: c, t: t}).startScheduler()
	steps := slices.Sorted(maps.Keys(swapWrites))
	var sites []*site
	before := map[string]map[string]corev1.Pod{}
	for _, step := range steps {
		s := namedSite(t, c, "swap-"+step, 1, 4, 100)
		before[step] = s.guarded()
		s.hold(step)
		sites = append(sites, s)
	}
	for i, s := range sites {
		s.strike(before[steps[i]]["guarded-1"].Spec.NodeName)
	}
	killHeld(c, steps, sites, func(i int) error { return sites[i].swaps(before[steps[i]], steps[i]) })
	for i, s := range sites {
		s.swapped(before[steps[i]], "guarded-1")
	}
}
