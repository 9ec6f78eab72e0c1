package integration

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// moveWrites are writes as a group moves to another domain, by the name of the step that the scheduler comes to before
// it.
var moveWrites = map[string]string{
	"made":   ranked + `"0"`,
	"ranked": `what == "leases/" && request.operation == "CREATE"`,
	"leased": `what == "pods/binding"`,
	"led":    ranked + `"1"`,
}

// ranked is the write by which a pod that a Job has made gets its rank, of the pod whose index in the Job follows.
const ranked = `what == "pods/" && request.operation == "UPDATE" && ` +
	`object.metadata.?labels["` + rqv1.LabelRun + `"].hasValue() && ` +
	`!oldObject.metadata.?labels["` + rqv1.LabelRun + `"].hasValue() && ` +
	`object.metadata.?labels["batch.kubernetes.io/job-completion-index"].orValue("") == `

// moves tells how far a group has not come whose pods were others before.
func (s *site) moves(before map[string]corev1.Pod, lost, step string) error {
	run := s.jobSetRun("train")
	w, err := s.look(s.t.Context())
	if err != nil {
		return err
	}
	leased := map[string]bool{}
	for i := range w.leases {
		leased[w.leases[i].Labels[rqv1.LabelPodUID]] = true
	}
	made, ranked, held, bound := 0, 0, 0, 0
	for i := range w.pods {
		pod := &w.pods[i]
		if was, there := before[pod.Name]; there && was.UID == pod.UID || pod.DeletionTimestamp != nil {
			continue
		}
		made++
		if pod.Labels[rqv1.LabelRun] == run {
			ranked++
		}
		if leased[string(pod.UID)] {
			held++
		}
		if pod.Spec.NodeName != "" {
			bound++
		}
	}
	reached := map[string]bool{
		"made":   w.nodes[lost].Spec.Unschedulable && made > 0 && ranked == 0,
		"ranked": ranked > 0 && held == 0,
		"leased": held > 0 && bound == 0,
		"led":    bound == 1 && made == 2 && ranked == 1,
	}
	if !reached[step] {
		return fmt.Errorf("%s has not come to %q: %d pods are made anew, %d have ranks, %d Leases, %d are bound: %s",
			s.namespace, step, made, ranked, held, bound, w.runs[run].Status.Message)
	}
	return nil
}

// TestKillBetweenStepsOfAMove kills the scheduler when a Job of a JobSet has lost a node, has no room in its domain,
// and has come to each step of its move to another one: it goes on there all the same, once.
func TestKillBetweenStepsOfAMove(t *testing.T) {
	t.Parallel()
	c := jobSetCluster(t, withoutElection, map[string]any{"gangDeadline": "10m"})
	installHolds(t, c, moveWrites)
	(&site{cluster: c, t: t}).startScheduler()
	steps := slices.Sorted(maps.Keys(moveWrites))
	sites, before, lost := map[string]*site{}, map[string]map[string]corev1.Pod{}, map[string]string{}
	for _, step := range steps {
		s := namedSite(t, c, "move-"+step, 2, 2, 100)
		s.mayUse(s.owner)
		s.jobSet("train", 1, exclusiveTopology, "fabric.domain")
		sites[step] = s
	}
	for _, step := range steps {
		s := sites[step]
		s.await(s.jobSetRun("train"), rqv1.RunRunning, "bound 16 GPUs")
		before[step] = s.podsOf(s.jobSetRun("train"))
		for _, pod := range before[step] {
			lost[step] = pod.Spec.NodeName
		}
		s.hold(step)
	}
	for step, s := range sites {
		s.strike(lost[step])
	}
	var inOrder []*site
	for _, step := range steps {
		inOrder = append(inOrder, sites[step])
	}
	killHeld(c, steps, inOrder, func(i int) error {
		step := steps[i]
		return sites[step].moves(before[step], lost[step], step)
	})
	for _, step := range steps {
		sites[step].moved(before[step], lost[step])
	}
}

// moved waits until a JobSet of one Job runs in another domain than one of its nodes is in that is lost, with a Lease
// for each of its pods and none besides, paid by its owner.
func (s *site) moved(before map[string]corev1.Pod, lost string) {
	s.t.Helper()
	run := s.jobSetRun("train")
	eventually(s.t, "all pods are to be made anew", func() error {
		return s.anew(run, map[string][]corev1.Pod{"0": slices.Collect(maps.Values(before))})
	})
	s.await(run, rqv1.RunRunning, "")
	if now := s.inDomains(s.byJob(run, 2))["0"]; now == s.domainOf(lost) {
		s.t.Errorf("%s goes on in %s, which has one node", s.namespace, now)
	}
	s.paidBy(run, map[string]int32{string(s.owner) + "/all own Active": 16})
	if diff := cmp.Diff(2, s.closures(run)[""]); diff != "" {
		s.t.Errorf("%s: open Leases (-want +got):\n%s", s.namespace, diff)
	}
	s.settled()
}
