package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// dying is a Run with a checkpoint that runs, and of which rank 1 has died at noon by itself.
func dying(edit func(*Observed)) Observed {
	return scene(func(o *Observed) {
		o.Run.Spec.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: 10 * time.Minute}}
		o.pods("n0", "n1 Failed", "n2", "n3")
		started(o)
		o.Run.Status.Message, o.Run.Status.Conditions = "bound 32 GPUs", []metav1.Condition{{Type: rqv1.ConditionStarted,
			Status: metav1.ConditionTrue, Reason: "Started", LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
		exits(o.Pods[1], 1, noon)
		edit(o)
	})
}

// told has the status tell of the death of rank 1, and what is done about it.
func (o *Observed) told(action rqv1.RestartAction) {
	o.Run.Status.Restarts = &rqv1.RunRestartsStatus{Incidents: 1, Counted: 1, Began: metav1.NewTime(noon)}
	o.Run.Status.Deaths = []rqv1.RunDeath{{Pod: "00000001", Index: 1, Node: "n1", Cause: rqv1.CauseProgram, Sign: "Error",
		Container: "main", ExitCode: 1, At: metav1.NewTime(noon), Incident: 1, First: true, Action: action}}
}

// closed has the Lease of rank 1 be closed.
func (o *Observed) closed() {
	o.Leases = append(o.Leases[:1:1], o.Leases[2:]...)
	o.Died = map[int]types.UID{1: "00000001"}
}

func (o *Observed) gone() { o.Pods = append(o.Pods[:1:1], o.Pods[2:]...) }

const restarting = "Running: restarting 1 of 4 ranks (restart 1 of 3): rank 1 ended on node n1, because of its " +
	"program: Error (container main, exit code 1)"

func TestARankIsRestarted(t *testing.T) {
	for name, c := range map[string]struct {
		observed Observed
		want     string
		replaces rank.Replacement
	}{
		"it has died": {observed: dying(func(*Observed) {}), want: "close lease-1 Failed if NodeStands; " + restarting},
		"its Lease is closed, and the status does not tell yet": {observed: dying(func(o *Observed) { o.closed() }),
			want: restarting},
		"the status tells, and its Lease is open": {observed: dying(func(o *Observed) { o.told(rqv1.ActionRestart) }),
			want: "close lease-1 Failed if NodeStands; " + restarting},
		"both": {observed: dying(func(o *Observed) {
			o.told(rqv1.ActionRestart)
			o.closed()
		}), want: "delete run-1; " + restarting},
		"it is gone": {observed: dying(func(o *Observed) {
			o.told(rqv1.ActionRestart)
			o.closed()
			o.gone()
		}), want: "create run-1; " + restarting, replaces: rank.Replacement{After: "00000001"}},
		"it is gone, and is to leave its node": {observed: dying(func(o *Observed) {
			o.told(rqv1.ActionMove)
			o.closed()
			o.gone()
		}), want: "create run-1; " + restarting,
			replaces: rank.Replacement{After: "00000001", Lost: "n1", Sign: "Error (container main, exit code 1)"}},
		"it is gone, and is to leave for its spare": {observed: dying(func(o *Observed) {
			o.told(rqv1.ActionMove)
			o.closed()
			o.gone()
			o.spares("n4", "n5")
			o.standing(time.Hour)
		}), want: "replace run-1; " + restarting, replaces: rank.Replacement{After: "00000001", Lost: "n1",
			Sign: "Error (container main, exit code 1)", Spare: "run-s0", SpareUID: "00000100", Node: "n4"}},
		"it was made to start it again just now": {observed: dying(func(o *Observed) {
			o.told(rqv1.ActionRestart)
			o.closed()
			o.Pods[1].CreationTimestamp = metav1.NewTime(noon.Add(-3 * time.Second))
			o.Pods[1].Annotations = map[string]string{rqv1.AnnotationReplaces: rank.Replacement{After: "x"}.Annotation()}
		}), want: restarting},
		"its Run declares no checkpoint": {observed: dying(func(o *Observed) { o.Run.Spec.Runtime = nil }),
			want: "close lease-1 Failed; Failed: pod run-1 failed: container main exited with code 1"},
		"its Run has a limit of its own": {observed: dying(func(o *Observed) {
			limit := int32(0)
			o.Run.Spec.Runtime.Restarts = &rqv1.RunRestarts{Limit: &limit}
		}), want: "close lease-1 Failed; Failed: pod run-1 failed: container main exited with code 1"},
		"it says that it would be of no use": {observed: dying(func(o *Observed) {
			o.Run.Spec.Runtime.Restarts = &rqv1.RunRestarts{OnExitCodes: map[string]rqv1.RestartAction{"1": rqv1.ActionFail}}
		}), want: "close lease-1 Failed; Failed: rank 1 died on node n1: Error (container main, exit code 1); " +
			"runtime.restarts.onExitCodes says Fail for exit code 1, so the Run does not restart"},
	} {
		d := Decide(c.observed)
		got := story(d)
		if at := strings.Index(got, "delete run-0; "); at >= 0 && strings.Contains(got, "Failed: ") {
			got = strings.NewReplacer("delete run-0; ", "", "delete run-2; ", "", "delete run-3; ", "").Replace(got)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, pod := range append(d.Create, d.Replace...) {
			if made, _ := rank.ReplacementOf(pod); made != c.replaces {
				t.Errorf("%s: it takes the place of %+v, want %+v", name, made, c.replaces)
			}
		}
	}
}

// TestAllAreReadyAgain tells when all ranks were, once.
func TestAllAreReadyAgain(t *testing.T) {
	observed := dying(func(o *Observed) {
		o.told(rqv1.ActionRestart)
		o.Pods[1] = o.maker().newRank(1)
		o.Pods[1].UID, o.Pods[1].Spec.NodeName, o.Pods[1].Status.Phase = "00000001", "n1", corev1.PodRunning
		o.Run.Status.Deaths[0].Pod = "before"
		for _, pod := range o.Pods[:3] {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
	})
	if d := Decide(observed); d.Status != nil && d.Status.Restarts.Ready != nil {
		t.Errorf("one is not ready, and all are said to be since %s", d.Status.Restarts.Ready)
	}
	observed.Pods[3].Status.Conditions = observed.Pods[0].Status.Conditions
	if d := Decide(observed); d.Status == nil || !d.Status.Restarts.Ready.Equal(&metav1.Time{Time: noon}) {
		t.Errorf("all are ready, and the status tells of %+v", d.Status)
	}
}

// TestARankThatIsNotReadyInTimeIsRestarted as one that has died: it is told first, ended then, and made anew.
func TestARankThatIsNotReadyInTimeIsRestarted(t *testing.T) {
	observed := dying(func(o *Observed) {
		o.Run.Spec.Runtime.StartupDeadline = &metav1.Duration{Duration: time.Minute}
		o.Pods[1].Status = corev1.PodStatus{Phase: corev1.PodRunning}
		for i, pod := range o.Pods {
			readies(pod, map[bool]corev1.ConditionStatus{true: corev1.ConditionFalse, false: corev1.ConditionTrue}[i == 1],
				noon.Add(-time.Hour))
		}
	})
	const why = "Running: restarting 1 of 4 ranks (restart 1 of 3): rank 1 ended on node n1, because of its program: " +
		"NotReady: not ready within its startupDeadline of 1m0s"
	for i, want := range []string{"", "delete run-1", "close lease-1 Failed if NodeStands; create run-1"} {
		d := Decide(observed)
		if d.Status != nil {
			if i == 0 && d.Status.Message != strings.TrimPrefix(why, "Running: ") {
				t.Errorf("step %d: %s: %s", i, d.Status.Phase, d.Status.Message)
			}
			observed.Run = observed.Run.DeepCopy()
			observed.Run.Status, d.Status = *d.Status, nil
		}
		if diff := cmp.Diff(want, story(d)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
		for _, pod := range d.Create {
			if made, _ := rank.ReplacementOf(pod); made.After != "00000001" {
				t.Errorf("it takes the place of %+v", made)
			}
		}
		if i == 1 {
			observed.gone()
		}
	}
}
