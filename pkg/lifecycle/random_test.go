package lifecycle

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// one draws one of some values; oneIn draws whether something is so that is so once in n times.
func one[T any](t *rapid.T, of ...T) T { return rapid.SampledFrom(of).Draw(t, "one") }

func oneIn(t *rapid.T, n int) bool { return rapid.IntRange(1, n).Draw(t, "of") == n }

// ago draws an instant in the past.
func ago(t *rapid.T) time.Time {
	return noon.Add(-one(t, time.Second, 20*time.Second, 2*time.Minute, 10*time.Minute, time.Hour, 2*time.Hour))
}

// drawObserved draws a Run and whatever may be there of it, most of it at odds with the rest.
func drawObserved(t *rapid.T) Observed {
	o := scene(nil)
	o.NoticePeriod, o.OpportunisticGrace = 30*time.Second, 10*time.Second
	drawSpec(t, &o)
	drawStatus(t, o.Run)
	healthy := oneIn(t, 2)
	for i := range 6 {
		if i < o.Demand.Pods() || oneIn(t, 2) {
			drawPod(t, &o, rank.Part{Index: i}, healthy)
		}
	}
	for i := range 3 {
		if i < o.Demand.Spares() || oneIn(t, 8) {
			drawPod(t, &o, rank.Part{Index: i, Spare: true}, healthy)
		}
	}
	drawLook(t, &o)
	drawReservation(t, &o)
	if oneIn(t, 20) {
		o.Run = nil
	}
	return o
}

func drawSpec(t *rapid.T, o *Observed) {
	spec := &o.Run.Spec
	o.Demand.Groups = one(t, 1, 2, 2, 2, 3)
	if oneIn(t, 2) {
		desired := one(t, int32(16), 32, 48)
		spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 16, MaxTotalGPUs: 48, StepGPUs: 16, DesiredTotalGPUs: &desired}
	}
	if oneIn(t, 3) {
		o.Demand.SparesPerGroup = 1
	}
	if oneIn(t, 5) {
		spec.Opportunistic = true
		o.Demand.PodsPerGroup, o.Demand.SparesPerGroup = 1, 0
		o.Shards = rapid.IntRange(0, 4).Draw(t, "shards")
	}
	if oneIn(t, 2) {
		spec.Runtime = &rqv1.RunRuntime{}
		if oneIn(t, 2) {
			spec.Runtime.Checkpoint = &metav1.Duration{Duration: time.Minute}
		}
		if oneIn(t, 3) {
			spec.Runtime.StartupDeadline = &metav1.Duration{Duration: one(t, time.Minute, 30*time.Minute, 3*time.Hour)}
		}
		if oneIn(t, 3) {
			spec.Runtime.MaxDuration = &metav1.Duration{Duration: one(t, 30*time.Minute, 2*time.Hour)}
			spec.Runtime.OnTimeout = one(t, "", "", rqv1.TimeoutFail, rqv1.TimeoutRequeue)
		}
	}
	spec.Suspend = oneIn(t, 5)
	if oneIn(t, 4) {
		most := one(t, int32(0), 8, 100)
		spec.Funding = &rqv1.RunFunding{AllowBorrow: oneIn(t, 2), Sponsors: []rqv1.Owner{"org:b"}, MaxBorrowGPUs: &most}
	}
	if oneIn(t, 5) {
		grace := one(t, int64(5), 100, 3000)
		spec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "main", Image: "train"}}}}
	}
	if oneIn(t, 12) {
		o.Run.DeletionTimestamp, o.Run.Finalizers = &metav1.Time{Time: noon}, []string{"others/keep"}
	}
}

func drawStatus(t *rapid.T, run *rqv1.Run) {
	s := &run.Status
	s.Ready, s.Attempt = one(t, int32(0), 1, 2, 9), one(t, int32(0), 0, 1)
	s.Phase = one(t, "", rqv1.RunPending, rqv1.RunPending, rqv1.RunRunning, rqv1.RunRunning, rqv1.RunRunning,
		rqv1.RunRunning, rqv1.RunCompleted, rqv1.RunFailed)
	condition := func(kind string, reasons ...string) {
		s.Conditions = append(s.Conditions, metav1.Condition{Type: kind, Reason: one(t, reasons...), Message: "said",
			Status:             one(t, metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse),
			LastTransitionTime: metav1.NewTime(ago(t))})
	}
	if s.Phase == rqv1.RunRunning || oneIn(t, 4) {
		condition(rqv1.ConditionStarted, "Started", "Shrink", "Grow", "Swapped", "RandomPreempt", "TimedOut")
		if !oneIn(t, 5) {
			s.Width = &rqv1.RunWidth{Min: 16, Max: 48, Desired: 32, Granted: one(t, int32(16), 32, 32, 32, 48),
				Growing: one(t, int32(0), 0, 0, 32, 48)}
		}
	}
	if s.Attempt > 0 && oneIn(t, 2) {
		s.Timeouts = &rqv1.RunTimeouts{Count: 1, Last: metav1.NewTime(ago(t)), Attempt: s.Attempt - 1}
	}
	if s.Phase == rqv1.RunFailed && oneIn(t, 2) {
		s.Message = "said"
		condition(rqv1.ConditionFinished, "Failed", "RandomPreempt")
	}
	for _, kind := range []string{rqv1.ConditionOverdraft, rqv1.ConditionAtRisk, rqv1.ConditionNodesHeldBack,
		rqv1.ConditionRoomKept, rqv1.ConditionGraceCapped, rqv1.ConditionSuspended} {
		if oneIn(t, 6) {
			condition(kind, "Said")
		}
	}
	if oneIn(t, 6) {
		condition(rqv1.ConditionReclaimed, "Reclaimed", "ReclaimedBySpare")
		s.Conditions[len(s.Conditions)-1].Message = one(t,
			"shards 0-1, 3 gave way: "+needed(rqv1.ClosedReclaimed),
			"shards 2 gave way: "+needed(rqv1.ClosedReclaimedBySpare), "shards 1 gave way: "+needed(rqv1.ClosedReclaimedQuota),
			"shards 0 gave way: x", "else")
	}
}

// drawPod adds a pod of a part, a Lease of it, both, or neither. Of a healthy Run most is as it should be.
func drawPod(t *rapid.T, o *Observed, part rank.Part, healthy bool) {
	wide := *o
	wide.Demand.Groups, wide.Demand.SparesPerGroup = 6, 1
	pod, number := wide.maker().newRank(part.Index), part.Index
	if part.Spare {
		pod, number = wide.maker().newSpare(part.Index), part.Index+10
	}
	pod.UID = types.UID(fmt.Sprintf("%08d", number))
	pod.CreationTimestamp = metav1.NewTime(ago(t))
	pod.Labels[rqv1.LabelCohort] = one(t, "0", "0", "1", "2")
	home := fmt.Sprintf("n%d", number)
	if !healthy || oneIn(t, 12) {
		home = one(t, "", "", home, home, home, "gone", "cordoned")
	}
	pod.Spec.NodeName = home
	if home != "" {
		pod.Status.Phase = corev1.PodRunning
		if !healthy || oneIn(t, 10) {
			pod.Status.Phase = one(t, corev1.PodRunning, corev1.PodRunning, corev1.PodFailed, corev1.PodSucceeded)
		}
	}
	if oneIn(t, 12) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: noon}, one(t, new(int64), new(int64(5000)))
	}
	if oneIn(t, 10) && !part.Spare {
		record := rank.Replacement{Lost: one(t, "", "gone"), Spare: "run-s0", SpareUID: "00000010", Node: "n10"}
		pod.Annotations = map[string]string{rqv1.AnnotationReplaces: record.Annotation()}
	}
	switch rapid.IntRange(0, 30).Draw(t, "labels") {
	case 0:
		delete(pod.Labels, rqv1.LabelIndex)
	case 1:
		pod.Labels[rqv1.LabelRunUID] = "other"
	case 2:
		delete(pod.Labels, rqv1.LabelRunUID)
		pod.OwnerReferences = nil
	}
	if oneIn(t, 20) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Reason: one(t, "Reclaimed", "Else")}}
	}
	if oneIn(t, 2) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady,
			Status:             one(t, corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse),
			LastTransitionTime: metav1.NewTime(one(t, noon, noon.Add(time.Minute), ago(t)))})
	}
	if !oneIn(t, 6) {
		o.Pods = append(o.Pods, pod)
	}
	if !oneIn(t, 12) && (home != "" || oneIn(t, 6)) {
		o.Leases = append(o.Leases, drawLease(t, o.Run, pod, part))
	}
}

func drawLease(t *rapid.T, run *rqv1.Run, pod *corev1.Pod, part rank.Part) *rqv1.Lease {
	node := pod.Spec.NodeName
	if node == "" || oneIn(t, 10) {
		node = one(t, "n3", "n19", "gone")
	}
	l := &rqv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lease-" + pod.Name, Labels: map[string]string{
			rqv1.LabelPodUID: string(pod.UID), rqv1.LabelIndex: strconv.Itoa(part.Index)}},
		Spec: rqv1.LeaseSpec{Owner: "org:a", RunRef: rqv1.LeaseRunRef{Name: "run", Namespace: "ns", UID: "run-uid"},
			Slice:          rqv1.LeaseSlice{Role: rank.RoleOf(&run.Spec, part), Nodes: []rqv1.NodeGPUs{{Name: node, GPUs: 8}}},
			Payer:          rqv1.LeasePayer{Budget: "b", Owner: one(t, rqv1.Owner("org:a"), "org:a", "org:a", "org:b", "org:c")},
			PaidByEnvelope: "e", Start: metav1.NewMicroTime(ago(t)), Cohort: one(t, int32(0), 0, 1),
			Attempt: one(t, int32(0), 0, 1)},
	}
	switch rapid.IntRange(0, 30).Draw(t, "foreign") {
	case 0:
		l.Spec.Owner = "org:x"
	case 1:
		l.Spec.RunRef.UID = "other"
	}
	if most := run.Spec.MaxDuration(); most > 0 && !oneIn(t, 6) {
		until := metav1.NewMicroTime(l.Spec.Start.Add(most))
		l.Spec.Until = &until
	}
	return l
}

// drawLook draws what the book knows of the Run.
func drawLook(t *rapid.T, o *Observed) {
	o.Owed, o.Leased, o.Told = map[string]int{}, map[types.UID]bool{}, map[types.UID]rqv1.ClosureReason{}
	o.Former = map[types.UID]bool{}
	for _, pod := range o.Pods {
		o.Former[pod.UID] = oneIn(t, 6)
		o.Leased[pod.UID] = oneIn(t, 3)
		if oneIn(t, 6) {
			o.Told[pod.UID] = one(t, rqv1.ClosedReclaimed, rqv1.ClosedReclaimedBySpare, rqv1.ClosedReclaimedQuota)
		}
	}
	for _, lease := range o.Leases {
		if oneIn(t, 10) {
			o.Owed["ns/"+lease.Name] = one(t, 4, 8)
		}
	}
	if oneIn(t, 2) {
		o.Refusal = &plan.Refusal{Reason: one(t, plan.InsufficientGPUs, plan.InsufficientGPUs, plan.NotYet),
			Message: "short by 8", Spare: oneIn(t, 6), Grow: oneIn(t, 6)}
		if oneIn(t, 3) {
			o.Refusal.Rejected = &plan.Rejection{}
		}
	}
	o.Narrower, o.GrowTo = one(t, int32(0), 0, 16, 32), one(t, int32(0), 0, 48, 32)
	o.Leaving, o.Lost = one(t, 0, 0, 2), one(t, nil, nil, map[int]string{1: "gone"})
	o.Outlook = one(t, nil, nil, &book.Outlook{At: noon, GPUs: 16}, &book.Outlook{At: noon,
		Refusal: &plan.Refusal{Reason: plan.InsufficientGPUs}, Promise: &forecast.Promise{At: noon.Add(time.Hour)}})
	o.RoomLapsed, o.Unpaid, o.Yields = oneIn(t, 5), oneIn(t, 8), oneIn(t, 8)
	o.NotTaken = one(t, time.Time{}, time.Time{}, noon, noon.Add(-time.Hour))
	o.Problem, o.Brake = one(t, "", "", "", "quota"), one(t, "", "", "", "paused")
	if oneIn(t, 25) {
		o.Shape, o.Demand = &plan.Refusal{Reason: plan.Unsupported, Message: "no shape"}, plan.Demand{}
	}
	o.Nodes["n1"] = book.NodeState{Stands: true, Accepts: oneIn(t, 2), HeldBack: oneIn(t, 5)}
	if oneIn(t, 4) {
		o.Risks = []rqv1.RunRisk{{Reservation: "other-r0", At: metav1.NewTime(noon.Add(time.Hour)), Probability: "0.5"}}
	}
	for range one(t, 0, 0, 0, 1, 2) {
		width := one(t, int32(16), 32)
		o.Cuts = append(o.Cuts, rank.Cut{At: ago(t), For: types.NamespacedName{Namespace: "ns", Name: "other"},
			Reservation: types.NamespacedName{Namespace: "ns", Name: "other-r0"},
			Cut: rqv1.Cut{UID: "run-uid", Action: one(t, rqv1.CutDropSpare, rqv1.CutShrink, rqv1.CutLottery),
				Spares: []int32{0}, Width: &width}})
	}
}

// drawReservation draws the Reservation that the Run waits for, or waited for, and what has become of its turn.
func drawReservation(t *rapid.T, o *Observed) {
	o.Commitments, o.Awaited = map[types.UID]string{}, map[types.UID]bool{}
	if oneIn(t, 3) {
		o.Promise = &forecast.Promise{At: noon.Add(time.Hour)}
	}
	if oneIn(t, 4) {
		o.Activation = &book.Activation{At: noon, Failed: oneIn(t, 3), Why: "room was taken"}
	}
	if !oneIn(t, 3) {
		return
	}
	r := &rqv1.Reservation{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run-r0", UID: "reservation",
		Labels: map[string]string{rqv1.LabelRunUID: one(t, "run-uid", "run-uid", "run-uid", "other")}}}
	r.Status.State = one(t, "", rqv1.ReservationPending, rqv1.ReservationActivating, rqv1.ReservationReleased)
	if oneIn(t, 2) {
		r.Status.Lottery = &rqv1.Lottery{Commitment: one(t, "", "a", "b"), Nonce: one(t, "", "c")}
	}
	if oneIn(t, 2) {
		at := metav1.NewMicroTime(noon)
		r.Status.ActivatedAt = &at
	}
	o.Commitments[r.UID], o.Awaited[r.UID] = one(t, "", "a"), oneIn(t, 2)
	o.Reservations = []*rqv1.Reservation{r}
}
