package lifecycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// scene is a Run of four pods of 8 GPUs in two groups, submitted an hour ago, on nodes n0 to n3.
func scene(edit func(*Observed)) Observed {
	o := Observed{Objects: book.Objects{Name: types.NamespacedName{Namespace: "ns", Name: "run"},
		Run: &rqv1.Run{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: "run-uid", Generation: 3,
				CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
			Spec: rqv1.RunSpec{Owner: "org:a", Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: 32}},
		}},
		Look: book.Look{
			Demand: plan.Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Groups: 2, PodsPerGroup: 2, Confined: true},
			Nodes:  map[string]book.NodeState{"cordoned": {Stands: true}}, GPUResource: "nvidia.com/gpu",
		},
		Now:   noon,
		Rules: Rules{GangDeadline: time.Minute, MaxGracePeriod: 10 * time.Minute, PauseImage: "pause"},
	}
	for i := range 20 {
		o.Nodes[fmt.Sprintf("n%d", i)] = book.NodeState{Stands: true, Accepts: true}
	}
	if edit != nil {
		edit(&o)
	}
	return o
}

// allLeased has the Leases of all pods be known to be open.
func (o *Observed) allLeased() {
	o.Leased = map[types.UID]bool{}
	for _, pod := range o.Pods {
		o.Leased[pod.UID] = true
	}
}

// maker makes the pods that the Run starts with.
func (o *Observed) maker() *maker {
	return &maker{run: o.Run, rules: &o.Rules, gpus: o.GPUResource, kept: o.Demand, shape: o.Demand, cohort: firstCohort}
}

// pods adds a pod for every description: a node and a phase, a node alone (running), "-" (unbound) or "" (absent).
func (o *Observed) pods(descriptions ...string) {
	for index, description := range descriptions {
		if description == "" {
			continue
		}
		pod := o.maker().newRank(index)
		pod.UID = types.UID(fmt.Sprintf("%08d", index))
		node, phase, _ := strings.Cut(description, " ")
		if node != "-" {
			pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
		}
		if phase == "deleting" {
			pod.DeletionTimestamp = &metav1.Time{Time: noon}
		} else if phase != "" {
			pod.Status.Phase = corev1.PodPhase(phase)
		}
		o.Pods = append(o.Pods, pod)
	}
}

// spares adds a spare pod for every description, likewise.
func (o *Observed) spares(descriptions ...string) {
	o.Demand.SparesPerGroup = 1
	for index, description := range descriptions {
		if description == "" {
			continue
		}
		pod := o.maker().newSpare(index)
		pod.UID = types.UID(fmt.Sprintf("%08d", 100+index))
		node, phase, _ := strings.Cut(description, " ")
		if node != "-" {
			pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
		}
		if phase == "deleting" {
			pod.DeletionTimestamp = &metav1.Time{Time: noon}
		} else if phase != "" {
			pod.Status.Phase = corev1.PodPhase(phase)
		}
		o.Pods = append(o.Pods, pod)
	}
}

// standing opens a Lease for each of the two spares, an age ago.
func (o *Observed) standing(age time.Duration) {
	first := len(o.Leases)
	o.leases(age, map[int]string{0: "n4", 1: "n5"})
	for i, lease := range o.Leases[first:] {
		lease.Name = fmt.Sprintf("lease-s%d", i)
		lease.Labels = map[string]string{rqv1.LabelPodUID: fmt.Sprintf("%08d", 100+i), rqv1.LabelIndex: strconv.Itoa(i)}
		lease.Spec.Slice.Role = rqv1.RoleSpare
	}
}

// leases opens a Lease for pods by index, on a node each, opened an age ago.
func (o *Observed) leases(age time.Duration, nodes map[int]string) {
	for _, index := range []int{0, 1, 2, 3} {
		if node, ok := nodes[index]; ok {
			o.Leases = append(o.Leases, &rqv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("lease-%d", index), Labels: map[string]string{
					rqv1.LabelPodUID: fmt.Sprintf("%08d", index), rqv1.LabelIndex: strconv.Itoa(index)}},
				Spec: rqv1.LeaseSpec{
					Owner: "org:a", RunRef: rqv1.LeaseRunRef{Name: "run", Namespace: "ns", UID: "run-uid"},
					Slice: rqv1.LeaseSlice{Role: rqv1.RoleActive, Nodes: []rqv1.NodeGPUs{{Name: node, GPUs: 8}}},
					Payer: rqv1.LeasePayer{Budget: "b", Owner: "org:a"}, PaidByEnvelope: "e",
					Start: metav1.NewMicroTime(noon.Add(-age)),
				},
			})
		}
	}
}

func everywhere() map[int]string { return map[int]string{0: "n0", 1: "n1", 2: "n2", 3: "n3"} }

func started(o *Observed) {
	o.Run.Status.Phase = rqv1.RunRunning
	o.leases(time.Hour, everywhere())
}

// story tells a decision in a few words.
func story(d Decision) string {
	var words []string
	tell := func(what string, evidence Evidence) {
		words = append(words, strings.TrimSuffix(what+" if "+string(evidence), " if "))
	}
	for _, deletion := range d.Delete {
		tell("delete "+deletion.Pod.Name, deletion.If)
	}
	for _, pod := range d.Replace {
		words = append(words, "replace "+pod.Name)
	}
	for _, closing := range d.Close {
		tell("close "+closing.Lease.Name+" "+string(closing.Reason), closing.If)
	}
	for _, pod := range d.Create {
		words = append(words, "create "+pod.Name)
	}
	if d.Status != nil {
		words = append(words, fmt.Sprintf("%s: %s", d.Status.Phase, d.Status.Message))
	}
	return strings.Join(words, "; ")
}

func TestDecide(t *testing.T) {
	noRoom := &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "short by 8"}
	checkpoint := func(o *Observed) {
		o.Run.Spec.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: time.Minute}}
	}
	for name, test := range map[string]struct {
		observed Observed
		want     string
	}{
		"a new Run gets its pods and no status yet": {
			scene(nil), "create run-0; create run-1; create run-2; create run-3"},
		"a refused Run says why": {
			scene(func(o *Observed) { o.pods("-", "-", "-", "-"); o.Refusal = noRoom }), "Pending: short by 8"},
		"a Run without a shape gets no pods": {
			scene(func(o *Observed) { o.Shape = &plan.Refusal{Reason: plan.Unsupported, Message: "no"} }), "Pending: no"},
		"what the API server holds against the pods is told": {
			scene(func(o *Observed) { o.pods("-", "-", "-", ""); o.Problem = "cannot create pods: exceeded quota" }),
			"create run-3; Pending: cannot create pods: exceeded quota"},
		"missing indexes are filled, not counts": {
			scene(func(o *Observed) { o.pods("-", "", "-", "") }), "create run-1; create run-3"},
		"bound pods make it run": {
			scene(func(o *Observed) { o.pods("n0", "n1", "n2", "n3"); o.leases(time.Second, everywhere()) }),
			"Running: bound 32 GPUs"},
		"a partly bound gang is left alone before its deadline": {
			scene(func(o *Observed) { o.pods("n0", "-", "-", "-"); o.leases(time.Second, map[int]string{0: "n0"}) }), ""},
		"and ended after it": {
			scene(func(o *Observed) { o.pods("n0", "-", "-", "-"); o.leases(2*time.Minute, map[int]string{0: "n0"}) }),
			"delete run-0 if Unbound; delete run-1 if Unbound; delete run-2 if Unbound; delete run-3 if Unbound; Pending: not " +
				"every pod could be bound within 1m0s; the Run starts again"},
		"also when what is bound is beyond the width that it desires by then": {
			scene(func(o *Observed) {
				o.Demand.Groups = 1
				o.pods("-", "-", "n2", "")
				o.leases(2*time.Minute, map[int]string{2: "n2"})
			}),
			"delete run-0 if Unbound; delete run-1 if Unbound; delete run-2 if Unbound; Pending: not every pod could be bound " +
				"within 1m0s; the Run starts again"},
		"the Leases of an ended start are closed as the pods go": {
			scene(func(o *Observed) {
				o.pods("", "n1 deleting", "-", "-")
				o.leases(2*time.Minute, map[int]string{0: "n0", 1: "n1"})
			}),
			"close lease-0 Unwound; create run-0"},
		"a pod of a running Run that cannot be bound where its Lease says": {
			scene(func(o *Observed) { o.pods("n0", "-", "n2", "n3"); started(o) }),
			"delete run-1 if Unbound; Running: replacing 1 of 4 pods"},
		"a pod that ends because it was told to go is replaced": {
			scene(func(o *Observed) {
				o.pods("n0", "n1 Succeeded", "n2", "n3")
				started(o)
				o.Pods[1].DeletionTimestamp = &metav1.Time{Time: noon}
			}), "close lease-1 Deleted if NodeStands; Running: bound 32 GPUs"},
		"a pod deleted by hand is replaced": {
			scene(func(o *Observed) { o.pods("n0", "", "n2", "n3"); started(o) }),
			"close lease-1 Deleted if NodeStands; create run-1; Running: replacing 1 of 4 pods"},
		"a pod that its node had ended, as the status tells, and that is gone": {
			scene(func(o *Observed) {
				o.pods("n0", "", "n2", "n3")
				started(o)
				o.Run.Status.Deaths = []rqv1.RunDeath{{Pod: "00000001", Cause: rqv1.CauseNode, Node: "n1",
					At: metav1.Time{Time: noon}}}
			}), "close lease-1 Evicted if NodeStands; create run-1; Running: replacing 1 of 4 pods"},
		"its name is waited for": {
			scene(func(o *Observed) { o.pods("n0", "n1 deleting", "n2", "n3"); started(o) }), "Running: bound 32 GPUs"},
		"a pod on a lost node": {
			scene(func(o *Observed) {
				o.pods("n0", "gone", "n2", "n3")
				started(o)
				o.Leases[1].Spec.Slice.Nodes[0].Name = "gone"
			}),
			"delete run-1 if NodeLost; Running: bound 32 GPUs"},
		"and once it is gone": {
			scene(func(o *Observed) {
				o.pods("n0", "", "n2", "n3")
				started(o)
				o.Leases[1].Spec.Slice.Nodes[0].Name = "gone"
			}),
			"close lease-1 NodeFailure; create run-1; Running: replacing 1 of 4 pods"},
		"a pod whose Lease is on a lost node": {
			scene(func(o *Observed) { o.pods("-", "-", "-", "-"); o.leases(time.Second, map[int]string{0: "gone"}) }),
			"delete run-0 if NodeLost"},
		"no room for the replacement, with a checkpoint": {
			scene(func(o *Observed) {
				o.pods("n0", "-", "n2", "n3")
				started(o)
				o.Leases = slices.Delete(o.Leases, 1, 2)
				o.Refusal = noRoom
				checkpoint(o)
			}),
			"delete run-0; delete run-1; delete run-2; delete run-3; Pending: a lost pod could not be replaced; it waits " +
				"to start again from its checkpoint: short by 8"},
		"and without": {
			scene(func(o *Observed) {
				o.pods("n0", "-", "n2", "n3")
				started(o)
				o.Leases = slices.Delete(o.Leases, 1, 2)
				o.Refusal = noRoom
			}),
			"delete run-0; delete run-1; delete run-2; delete run-3; Failed: a lost pod could not be replaced and the Run " +
				"declares no checkpoint: short by 8"},
		"a rank that ended well is not missed": {
			scene(func(o *Observed) { o.pods("n0", "n1 Succeeded", "n2", "n3"); started(o) }),
			"close lease-1 Completed; Running: bound 32 GPUs"},
		"all ranks ended well": {
			scene(func(o *Observed) {
				o.pods("n0 Succeeded", "n1 Succeeded", "n2 Succeeded", "n3 Succeeded")
				started(o)
				o.Leases = o.Leases[:1]
			}),
			"close lease-0 Completed; Completed: all 4 pods completed"},
		"one rank failed": {
			scene(func(o *Observed) {
				o.pods("n0", "n1", "n2 Failed", "n3")
				started(o)
				o.Pods[2].Status.ContainerStatuses = []corev1.ContainerStatus{
					{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7}}}}
			}),
			"delete run-0; delete run-1; delete run-3; close lease-2 Failed; Failed: pod run-2 failed: container main " +
				"exited with code 7"},
		"a failed Run makes no new pods": {
			scene(func(o *Observed) {
				o.Run.Status = rqv1.RunStatus{Phase: rqv1.RunFailed, Message: "it broke"}
				o.pods("", "", "n2 Failed", "")
			}),
			"Failed: it broke"},
		"a completed one neither": {
			scene(func(o *Observed) {
				o.Run.Status.Phase = rqv1.RunCompleted
				o.leases(time.Hour, map[int]string{0: "n0"})
			}),
			"close lease-0 Deleted; Completed: all 4 pods completed"},
		"a bound pod without a Lease": {
			scene(func(o *Observed) { o.pods("n0", "n1", "n2", "n3"); started(o); o.Leases = o.Leases[:3] }),
			"delete run-3 if Unpaid; Running: bound 32 GPUs"},
		"a bound pod whose Lease is on its way": {
			scene(func(o *Observed) {
				o.pods("n0", "n1", "n2", "n3")
				o.leases(time.Second, map[int]string{0: "n0", 1: "n1", 2: "n2"})
				o.allLeased()
			}), ""},
		"a Run that is gone": {
			scene(func(o *Observed) { o.pods("n0", "", "n2", "n3"); started(o); o.Run = nil }),
			"delete run-0 if RunGone; delete run-2 if RunGone; delete run-3 if RunGone; close lease-1 Deleted"},
		"an earlier Run's pod has the name": {
			scene(func(o *Observed) {
				o.pods("n0", "-", "-", "-")
				o.Pods[0].Labels[rqv1.LabelRunUID] = "earlier"
			}), "delete run-0 if RunGone"},
	} {
		if got := story(Decide(test.observed)); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
}

func TestDecidingAgainChangesNothing(t *testing.T) {
	o := scene(func(o *Observed) { o.pods("n0", "n1", "n2", "n3"); o.leases(time.Second, everywhere()) })
	first := Decide(o)
	o.Run.Status = *first.Status
	o.Now = o.Now.Add(time.Hour)
	if got := story(Decide(o)); got != "" {
		t.Errorf("a settled Run is decided on again: %s", got)
	}
}

func TestStatusOfARunningRun(t *testing.T) {
	o := scene(func(o *Observed) { o.pods("n0", "n1", "n2", "n3"); o.leases(time.Second, everywhere()) })
	got := Decide(o).Status
	if diff := cmp.Diff(&rqv1.RunWidth{Min: 32, Max: 32, Desired: 32, Granted: 32, Allocated: 32}, got.Width); diff != "" {
		t.Errorf("width (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&rqv1.RunFundingStatus{OwnedGPUs: 32}, got.Funding); diff != "" {
		t.Errorf("funding (-want +got):\n%s", diff)
	}
	c := meta.FindStatusCondition(got.Conditions, rqv1.ConditionStarted)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != 3 ||
		!c.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("condition %s: %+v", rqv1.ConditionStarted, c)
	}
}

func TestPodIdentity(t *testing.T) {
	o := scene(func(o *Observed) {
		o.Run.Spec.Template = &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "x"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "main", Image: "train", Env: []corev1.EnvVar{{Name: "MASTER_PORT", Value: "1234"}}},
				{Name: "side", Image: "log"},
			}},
		}
	})
	d := Decide(o)
	pod := d.Create[3]
	wantLabels := map[string]string{
		"team": "x", rqv1.LabelRun: "run", rqv1.LabelIndex: "3", rqv1.LabelGroupIndex: "1", rqv1.LabelCohort: "0",
		rqv1.LabelRole:  "Active",
		rqv1.LabelEpoch: "0", rqv1.LabelRunUID: "run-uid",
	}
	if diff := cmp.Diff(wantLabels, pod.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	env := map[string]string{}
	for _, variable := range pod.Spec.Containers[0].Env {
		env[variable.Name] = variable.Value
		if from := variable.ValueFrom; from != nil {
			env[variable.Name] = from.FieldRef.FieldPath
		}
	}
	for name, want := range map[string]string{"RANK": "3", "MASTER_ADDR": "run-0.run",
		"WORLD_SIZE":  "metadata.annotations['rq.davidlangworthy.io/world-size']",
		"MASTER_PORT": "1234",
		"PET_NNODES":  "4", "JOBTREE_EPOCH": "0", "PET_NODE_RANK": "3", "PET_NPROC_PER_NODE": "8"} {
		if env[name] != want {
			t.Errorf("environment %s is %q, want %q", name, env[name], want)
		}
	}
	if got := rank.PodGPUs(&pod.Spec, "nvidia.com/gpu"); got != 8 {
		t.Errorf("the pod asks for %d GPUs, want 8", got)
	}
	if pod.Spec.SchedulerName != rqv1.SchedulerName || pod.Spec.Hostname != "run-3" || pod.Spec.Subdomain != "run" ||
		pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("scheduler %q, hostname %q, subdomain %q, restart policy %q", pod.Spec.SchedulerName, pod.Spec.Hostname,
			pod.Spec.Subdomain, pod.Spec.RestartPolicy)
	}
	if d.Service == nil || d.Service.Name != "run" || d.Service.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("service %+v", d.Service)
	}
	if run, part, ok := rank.Membership(pod); !ok || run != "run-uid" || part != (rank.Part{Index: 3}) {
		t.Errorf("membership %s, %+v, %v", run, part, ok)
	}
}
