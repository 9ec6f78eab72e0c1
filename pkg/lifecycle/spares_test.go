package lifecycle

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// spared is a scene with two spares: four active pods and the spares run, or as the descriptions have it.
func spared(edit func(*Observed), spares ...string) Observed {
	return scene(func(o *Observed) {
		o.pods("n0", "n1", "n2", "n3")
		started(o)
		o.spares(spares...)
		o.standing(time.Hour)
		if edit != nil {
			edit(o)
		}
	})
}

func TestDecideWithSpares(t *testing.T) {
	pending := func(o *Observed) { o.Run.Status.Phase = rqv1.RunPending }
	for name, test := range map[string]struct {
		observed Observed
		want     string
	}{
		"a new Run gets its spares too": {
			scene(func(o *Observed) { o.Demand.SparesPerGroup = 1 }),
			"create run-0; create run-1; create run-2; create run-3; create run-s0; create run-s1"},
		"it runs when all are bound": {spared(pending, "n4", "n5"), "Running: bound 32 GPUs"},
		"and not before": {spared(pending, "n4", "-"),
			"delete run-0 if Unbound; delete run-1 if Unbound; delete run-2 if Unbound; delete run-3 if Unbound; delete " +
				"run-s0 if Unbound; delete run-s1 if Unbound; Pending: not every pod could be bound within 1m0s; the Run starts " +
				"again"},
		"a running Run goes on without a spare": {
			spared(nil, "n4", ""), "close lease-s1 Deleted if NodeStands; create run-s1; Running: bound 32 GPUs"},
		"and without room for one": {
			spared(func(o *Observed) {
				o.Leases = o.Leases[:5]
				o.Refusal = &plan.Refusal{Reason: plan.InsufficientGPUs, Spare: true, Message: "short by 8"}
			}, "n4", "-"), "Running: bound 32 GPUs"},
		"a spare that ended is replaced": {
			spared(nil, "n4 Failed", "n5"), "delete run-s0; close lease-s0 Failed if NodeStands; Running: bound 32 GPUs"},
		"and one on a lost node": {
			spared(func(o *Observed) { o.Leases[4].Spec.Slice.Nodes[0].Name = "gone" }, "gone", "n5"),
			"delete run-s0 if NodeLost; Running: bound 32 GPUs"},
		"a spare without a Lease": {
			spared(func(o *Observed) { o.Leases = o.Leases[:5] }, "n4", "n5"),
			"delete run-s1 if Unpaid; Running: bound 32 GPUs"},
		"a spare that cannot be bound where its Lease says": {
			spared(nil, "n4", "-"), "delete run-s1 if Unbound; Running: bound 32 GPUs"},
		"spares go when all ranks have ended well": {
			spared(func(o *Observed) {
				for _, pod := range o.Pods[:4] {
					pod.Status.Phase = corev1.PodSucceeded
				}
				o.Leases = o.Leases[4:]
			}, "n4", "n5"), "delete run-s0; delete run-s1; Completed: all 4 pods completed"},
		"and their Leases close once they are gone": {
			spared(func(o *Observed) {
				o.Run.Status.Phase = rqv1.RunCompleted
				for _, pod := range o.Pods[:4] {
					pod.Status.Phase = corev1.PodSucceeded
				}
				o.Leases = o.Leases[4:]
			}, "", "n5 deleting"), "close lease-s0 Completed; Completed: all 4 pods completed"},
		"spares go with the shape of their Run": {
			spared(func(o *Observed) {
				o.Run.Status.Phase = rqv1.RunPending
				o.Pods, o.Leases = o.Pods[4:], o.Leases[4:]
				o.Shape = &plan.Refusal{Reason: plan.NeverFits, Message: "too wide"}
			}, "n4", "-"), "delete run-s0; delete run-s1; Pending: too wide"},
		"one that runs has failed when all of its ranks are lost": {
			spared(func(o *Observed) {
				o.Pods, o.Leases = o.Pods[4:], o.Leases[4:]
				o.Shape = &plan.Refusal{Reason: plan.UnknownGPUType, Message: "no such nodes"}
				o.Refusal = o.Shape
			}, "n4", "-"), "delete run-s0; delete run-s1; Failed: a lost pod could not be replaced and the Run declares no " +
				"checkpoint: no such nodes"},
		"and waits if it declares a checkpoint": {
			spared(func(o *Observed) {
				checkpointed(o)
				o.Pods, o.Leases = o.Pods[4:], o.Leases[4:]
				o.Shape = &plan.Refusal{Reason: plan.NeverFits, Message: "too wide"}
			}, "n4", "-"), "delete run-s0; delete run-s1; Pending: too wide"},
		"spares go with a Run that fails": {
			spared(func(o *Observed) { o.Pods[1].Status.Phase = corev1.PodFailed }, "n4", "n5"),
			"delete run-0; delete run-2; delete run-3; delete run-s0; delete run-s1; close lease-1 Failed; Failed: pod " +
				"run-1 failed"},
	} {
		if got := story(Decide(test.observed)); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
}

func TestWidthLeavesSparesOut(t *testing.T) {
	o := spared(func(o *Observed) { o.Run.Status.Phase = rqv1.RunPending }, "n4", "n5")
	want := &rqv1.RunWidth{Min: 32, Max: 32, Desired: 32, Granted: 32, Allocated: 32}
	if diff := cmp.Diff(want, Decide(o).Status.Width); diff != "" {
		t.Errorf("width (-want +got):\n%s", diff)
	}
}

func TestSparePod(t *testing.T) {
	toleration := corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists}
	o := scene(func(o *Observed) {
		o.Demand.SparesPerGroup = 1
		o.Run.Spec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "fetch", Image: "fetch"}},
			Containers: []corev1.Container{{Name: "main", Image: "train", ImagePullPolicy: corev1.PullAlways},
				{Name: "side", Image: "train"}},
			Tolerations:        []corev1.Toleration{toleration},
			NodeSelector:       map[string]string{"pool": "a"},
			ServiceAccountName: "trainer",
			ImagePullSecrets:   []corev1.LocalObjectReference{{Name: "registry"}},
		}}
	})
	pod := Decide(o).Create[5]
	if run, part, ok := rank.Membership(pod); !ok || run != "run-uid" || part != (rank.Part{Index: 1, Spare: true}) {
		t.Errorf("membership %s, %+v, %v", run, part, ok)
	}
	labels := map[string]string{
		rqv1.LabelRun: "run", rqv1.LabelIndex: "1", rqv1.LabelGroupIndex: "1", rqv1.LabelCohort: "0", rqv1.LabelRole: "Spare",
		rqv1.LabelRunUID: "run-uid",
	}
	if diff := cmp.Diff(labels, pod.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	grace, token := int64(0), false
	want := corev1.PodSpec{
		SchedulerName: rqv1.SchedulerName, RestartPolicy: corev1.RestartPolicyAlways,
		TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: &token,
		Containers: []corev1.Container{{
			Name: "pause", Image: "pause", SecurityContext: leastPrivilege(),
			Env: []corev1.EnvVar{{Name: "JOBTREE_RUN", Value: "run"}, {Name: "JOBTREE_GROUP_INDEX", Value: "1"}},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "image-0", MountPath: "/warm/0", ReadOnly: true}, {Name: "image-1", MountPath: "/warm/1", ReadOnly: true},
			},
		}},
		Volumes: []corev1.Volume{
			{Name: "image-0", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "fetch"}}},
			{Name: "image-1", VolumeSource: corev1.VolumeSource{
				Image: &corev1.ImageVolumeSource{Reference: "train", PullPolicy: corev1.PullAlways}}},
		},
		Tolerations: enduring([]corev1.Toleration{toleration}), NodeSelector: map[string]string{"pool": "a"},
		ServiceAccountName: "trainer", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
	}
	if diff := cmp.Diff(want, pod.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if gpus := rank.PodGPUs(&pod.Spec, "nvidia.com/gpu"); gpus != 0 {
		t.Errorf("the pod asks for %d GPUs, want none", gpus)
	}
}

// A spare may be where its ranks may, by what admission has added to these.
func TestASpareToleratesWhatAdmittedRanksDo(t *testing.T) {
	o := spared(func(o *Observed) {
		o.Pods = slices.DeleteFunc(o.Pods, func(pod *corev1.Pod) bool { return pod.Labels[rqv1.LabelRole] == "Spare" })
		for _, pod := range o.Pods {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "nvidia.com/gpu",
				Operator: corev1.TolerationOpExists})
		}
		o.Leases = o.Leases[:4]
	}, "n4", "n5")
	made := Decide(o).Create
	if len(made) == 0 {
		t.Fatal("no spare is made")
	}
	for _, pod := range made {
		if diff := cmp.Diff(o.Pods[0].Spec.Tolerations, pod.Spec.Tolerations); diff != "" {
			t.Errorf("%s tolerates (-ranks +spare):\n%s", pod.Name, diff)
		}
	}
}

func TestMalleableRun(t *testing.T) {
	desired := int32(48)
	for name, test := range map[string]struct {
		desired *int32
		want    rqv1.RunWidth
	}{
		"tends to its widest": {nil, rqv1.RunWidth{Min: 16, Max: 64, Desired: 64, Granted: 32, Allocated: 32}},
		"or to what it says":  {&desired, rqv1.RunWidth{Min: 16, Max: 64, Desired: 48, Granted: 32, Allocated: 32}},
	} {
		o := scene(func(o *Observed) {
			o.Run.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 16, MaxTotalGPUs: 64, StepGPUs: 16,
				DesiredTotalGPUs: test.desired}
			o.pods("n0", "n1", "n2", "n3")
			o.leases(time.Second, everywhere())
		})
		d := Decide(o)
		if diff := cmp.Diff(&test.want, d.Status.Width); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, variable := range o.Pods[0].Spec.Containers[0].Env {
			if variable.Name == "PET_NNODES" && variable.Value != "2:8" {
				t.Errorf("PET_NNODES is %s, want 2:8", variable.Value)
			}
		}
	}
}

// ageing is a Run that has run for an hour and may run for most.
func ageing(most time.Duration, edit func(*Observed)) Observed {
	return scene(func(o *Observed) {
		o.Run.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: most},
			Checkpoint: &metav1.Duration{Duration: time.Minute}}
		o.Run.Status.Conditions = []metav1.Condition{{
			Type: rqv1.ConditionStarted, Status: metav1.ConditionTrue, Reason: "Started",
			LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)),
		}}
		o.pods("n0", "n1", "n2", "n3")
		started(o)
		if edit != nil {
			edit(o)
		}
	})
}

func TestARunEndsAfterItsMaxDuration(t *testing.T) {
	o := ageing(time.Hour, nil)
	d := Decide(o)
	if want := "delete run-0; delete run-1; delete run-2; delete run-3; Failed: ran for its " +
		"maxDuration of 1h0m0s"; story(d) != want {
		t.Errorf("got %s\nwant %s", story(d), want)
	}
	for range 2 { // what was said once stays
		finished := meta.FindStatusCondition(o.Run.Status.Conditions, rqv1.ConditionFinished)
		if d.Status != nil {
			finished = meta.FindStatusCondition(d.Status.Conditions, rqv1.ConditionFinished)
			o.Run.Status = *d.Status
		}
		if finished == nil || finished.Reason != rqv1.ReasonTimedOut {
			t.Errorf("condition %+v, want the reason TimedOut", finished)
		}
		o.Pods = nil
		d = Decide(o)
	}
	if want := "close lease-0 Failed; close lease-1 Failed; close lease-2 Failed; close lease-3 Failed"; story(d) != want {
		t.Errorf("got %s\nwant %s", story(d), want)
	}
}

func TestMaxDurationYieldsToWhatHasHappened(t *testing.T) {
	done := ageing(time.Hour, func(o *Observed) {
		for _, pod := range o.Pods {
			pod.Status.Phase = corev1.PodSucceeded
		}
		o.Leases = nil
	})
	if want := "Completed: all 4 pods completed"; story(Decide(done)) != want {
		t.Errorf("got %s, want %s", story(Decide(done)), want)
	}
	broken := ageing(time.Hour, func(o *Observed) { o.Pods[0].Status.Phase = corev1.PodFailed })
	if got := Decide(broken).Status.Message; got != "pod run-0 failed" {
		t.Errorf("got %s, want that the pod failed", got)
	}
	again := ageing(time.Hour, func(o *Observed) { o.Run.Status.Conditions[0].Status = metav1.ConditionFalse })
	if phase := Decide(again).Status.Phase; phase != rqv1.RunRunning {
		t.Errorf("a Run that has just started again is %s", phase)
	}
}

func TestLookingAgainAtTheEarliestInstant(t *testing.T) {
	replacing := func(o *Observed) {
		o.Pods[1].Spec.NodeName, o.Pods[1].Status.Phase = "", corev1.PodPending
		o.Leases[1].Spec.Start = metav1.NewMicroTime(noon.Add(-10 * time.Second))
		o.allLeased()
	}
	for name, test := range map[string]struct {
		observed Observed
		want     time.Duration
	}{
		"nothing is due":            {spared(nil, "n4", "n5"), 0},
		"the end of the Run":        {ageing(90*time.Minute, nil), 30 * time.Minute},
		"the gang's deadline first": {ageing(90*time.Minute, replacing), 51 * time.Second},
		"the Run's end first":       {ageing(time.Hour+time.Second, replacing), time.Second},
	} {
		if got := Decide(test.observed).After; got != test.want {
			t.Errorf("%s: looks again after %s, want %s", name, got, test.want)
		}
	}
}
