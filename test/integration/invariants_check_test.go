package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// sound is a world in which every invariant holds: a Run of two pods of 4 GPUs in a group, each on a node of its own.
func sound() *world {
	w := &world{nodes: map[string]corev1.Node{}, runs: map[string]rqv1.Run{}, bound: map[string]string{}}
	for _, name := range []string{"a", "b"} {
		w.nodes[name] = corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": "r", "cluster": "c",
				"fabric.domain": "d"}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{gpuResource: resource.MustParse("4")}},
		}
		w.pods = append(w.pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
				Labels: map[string]string{rqv1.LabelRun: "run", rqv1.LabelGroupIndex: "0"}},
			Spec: corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{gpuResource: resource.MustParse("4")},
			}}}},
		})
		w.leases = append(w.leases, rqv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{rqv1.LabelPodUID: name}},
			Spec: rqv1.LeaseSpec{
				RunRef: rqv1.LeaseRunRef{Name: "run", UID: "run"},
				Slice:  rqv1.LeaseSlice{Role: rqv1.RoleActive, Nodes: []rqv1.NodeGPUs{{Name: name, GPUs: 4}}},
				Payer:  rqv1.LeasePayer{Budget: "budget", Owner: "org", Relation: rqv1.RelationOwn}, PaidByEnvelope: "all",
				Start: metav1.NewMicroTime(time.Unix(1, 0)),
			},
		})
		w.bound[name] = name
	}
	group := int32(8)
	w.runs["run"] = rqv1.Run{
		ObjectMeta: metav1.ObjectMeta{Name: "run", UID: "run"},
		Spec:       rqv1.RunSpec{Resources: rqv1.RunResources{TotalGPUs: 8}, Locality: &rqv1.RunLocality{GroupGPUs: &group}},
		Status:     rqv1.RunStatus{Phase: rqv1.RunRunning},
	}
	w.budgets = []rqv1.Budget{{
		ObjectMeta: metav1.ObjectMeta{Name: "budget"},
		Spec: rqv1.BudgetSpec{
			Owner: "org", Envelopes: []rqv1.Envelope{{Name: "all", Concurrency: 8}},
			AggregateCaps: []rqv1.AggregateCap{{Name: "cap", Envelopes: []string{"all"}, MaxConcurrency: ptr.To[int32](8)}},
		},
		Status: rqv1.BudgetStatus{
			UsedGPUs: 8, Envelopes: []rqv1.EnvelopeStatus{{Name: "all", OwnedGPUs: 8}},
			AggregateCaps: []rqv1.AggregateCapStatus{{Name: "cap", UsedGPUs: 8}},
		},
	}}
	return w
}

// TestInvariantsAreChecked breaks a sound world in one way after the other: the checker names the invariant.
func TestInvariantsAreChecked(t *testing.T) {
	setPhase := func(w *world, phase rqv1.RunPhase) {
		run := w.runs["run"]
		run.Status.Phase = phase
		w.runs["run"] = run
	}
	all := func(w *world) *rqv1.EnvelopeStatus { return &w.budgets[0].Status.Envelopes[0] }
	ended := metav1.NewMicroTime(time.Unix(2, 0))
	cases := map[string]struct {
		breaks func(*world)
		want   []string
	}{
		"nothing": {func(*world) {}, nil},
		"two on a node": {func(w *world) { w.pods[1].Spec.NodeName, w.leases[1].Spec.Slice.Nodes[0].Name = "a", "a" },
			[]string{"I1", "I1"}},
		"two at an instant": {func(w *world) { w.leases = append(w.leases, closed(w.leases[0], ended)) },
			[]string{"I1", "I2"}},
		"pod without Lease": {func(w *world) { w.leases = w.leases[:1] }, []string{"I2", "I2", "I2", "I8"}},
		"Lease without pod": {func(w *world) { w.pods = w.pods[:1] }, []string{"I2", "I7", "I7"}},
		"spare without Lease": {func(w *world) {
			spare := w.pods[0].DeepCopy()
			spare.Name, spare.UID, spare.Labels[rqv1.LabelRole] = "spare", "spare", string(rqv1.RoleSpare)
			spare.Spec.Containers = nil
			w.pods = append(w.pods, *spare)
		}, []string{"I2"}},
		"Lease of the wrong role": {func(w *world) { w.leases[0].Spec.Slice.Role = rqv1.RoleSpare },
			[]string{"I2", "I2", "I8"}},
		"Lease elsewhere": {func(w *world) { w.pods[0].Spec.NodeName, w.pods[1].Spec.NodeName = "b", "a" },
			[]string{"I2", "I2"}},
		"closed without end": {func(w *world) { w.leases[0].Status.ClosureReason = rqv1.ClosedFailed }, []string{"I4"}},
		"ended Run holds":    {func(w *world) { setPhase(w, rqv1.RunCompleted) }, []string{"I5", "I5"}},
		"gone Run holds":     {func(w *world) { delete(w.runs, "run") }, []string{"I5", "I5"}},
		"split group":        {func(w *world) { w.nodes["b"].Labels["fabric.domain"] = "e" }, []string{"I6"}},
		"partly bound":       {func(w *world) { setPhase(w, rqv1.RunPending) }, []string{"I9", "I9"}},
		"miscounted": {func(w *world) { all(w).OwnedGPUs, w.budgets[0].Status.AggregateCaps[0].UsedGPUs = 7, 7 },
			[]string{"I8", "I8"}},
		"cap miscounted":     {func(w *world) { w.budgets[0].Status.AggregateCaps[0].UsedGPUs = 7 }, []string{"I8"}},
		"total miscounted":   {func(w *world) { w.budgets[0].Status.UsedGPUs = 7 }, []string{"I8"}},
		"under a wrong name": {func(w *world) { all(w).OwnedGPUs, all(w).LentGPUs = 4, 4 }, []string{"I8"}},
		"envelope gone":      {func(w *world) { w.budgets[0].Status.Envelopes = nil }, []string{"I8", "I8", "I8"}},
		"overspent":          {func(w *world) { w.budgets[0].Spec.Envelopes[0].Concurrency = 4 }, []string{"I3"}},
		"cap overspent": {func(w *world) { w.budgets[0].Spec.AggregateCaps[0].MaxConcurrency = ptr.To[int32](4) },
			[]string{"I3"}},
		"lending overspent": {func(w *world) {
			for i := range w.leases {
				w.leases[i].Spec.Payer.Relation = rqv1.RelationSponsor
			}
			*all(w) = rqv1.EnvelopeStatus{Name: "all", LentGPUs: 8, LendingGPUs: 8}
			w.budgets[0].Spec.Envelopes[0].Lending = &rqv1.Lending{MaxConcurrency: ptr.To[int32](4)}
		}, []string{"I3"}},
		"overdraft from nowhere": {func(w *world) {
			all(w).OwnedGPUs, all(w).OverdraftGPUs, w.budgets[0].Status.OverdraftGPUs = 4, 4, 4
		}, []string{"I3"}},
		"overdraft of an edit": {func(w *world) {
			all(w).OwnedGPUs, all(w).OverdraftGPUs, w.budgets[0].Status.OverdraftGPUs = 4, 4, 4
			w.budgets[0].Generation = 2
		}, nil},
		"Reservation of a Run that runs": {func(w *world) { w.reservations = []rqv1.Reservation{reservedFor("run")} },
			[]string{"R17"}},
		"two Reservations of one Run": {func(w *world) {
			setPhase(w, rqv1.RunPending)
			w.pods, w.leases, w.bound = nil, nil, nil
			w.budgets[0].Status = rqv1.BudgetStatus{}
			w.reservations = []rqv1.Reservation{reservedFor("run"), reservedFor("run")}
		}, []string{"R17"}},
		"cut without a record": {func(w *world) {
			w.leases = append(w.leases, closed(w.leases[0], ended))
			last := &w.leases[len(w.leases)-1]
			last.Labels, last.Status.ClosureReason = map[string]string{}, rqv1.ClosedRandomPreempt
			last.Spec.Slice.Nodes = []rqv1.NodeGPUs{{Name: "elsewhere", GPUs: 4}}
		}, []string{"R19"}},
		"cut and not carried out": {func(w *world) {
			w.reservations = []rqv1.Reservation{activated("other", "run")}
		}, []string{"R19", "R19", "R21"}},
		"cut each other": {func(w *world) {
			w.reservations = []rqv1.Reservation{activated("x", "y"), activated("y", "x")}
		}, []string{"R21", "R21", "R22"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := sound()
			c.breaks(w)
			var got []string
			for _, line := range w.broken() {
				invariant, _, _ := strings.Cut(line, ":")
				got = append(got, invariant)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found %v, want %v:\n%s", got, c.want, strings.Join(w.broken(), "\n"))
			}
		})
	}
}

// closed is a copy of a Lease that has ended.
func closed(lease rqv1.Lease, ended metav1.MicroTime) rqv1.Lease {
	lease.Status = rqv1.LeaseStatus{Closed: true, Ended: &ended, ClosureReason: rqv1.ClosedFailed}
	return lease
}

// reservedFor is a Reservation for a Run that waits, whose UID is its name.
func reservedFor(run string) rqv1.Reservation {
	return rqv1.Reservation{
		ObjectMeta: metav1.ObjectMeta{Name: run + "-r0", Labels: map[string]string{rqv1.LabelRunUID: run}},
		Spec:       rqv1.ReservationSpec{RunRef: rqv1.NamespacedName{Name: run}},
		Status:     rqv1.ReservationStatus{State: rqv1.ReservationPending},
	}
}

// activated is the Reservation of a Run that has started at the cost of another, without a word of the draw.
func activated(run, victim string) rqv1.Reservation {
	r, at, ended := reservedFor(run), metav1.NewMicroTime(time.Unix(9, 0)), metav1.NewTime(time.Unix(10, 0))
	r.Status = rqv1.ReservationStatus{State: rqv1.ReservationReleased, ActivatedAt: &at, EndedAt: &ended,
		Cuts: []rqv1.Cut{{UID: types.UID(victim), Action: rqv1.CutLottery}}}
	return r
}

// TestRecordsAreWatched changes what may and what may not change of a Reservation's record.
func TestRecordsAreWatched(t *testing.T) {
	at := metav1.NewMicroTime(time.Unix(9, 0))
	published := rqv1.ReservationStatus{State: rqv1.ReservationActivating, ActivatedAt: &at,
		ConflictSet: []rqv1.Conflict{{GPUs: 1}}, Lottery: &rqv1.Lottery{Commitment: "c", ConflictSetDigest: "d"}}
	revealed := *published.DeepCopy()
	revealed.Lottery.Nonce, revealed.Lottery.Draws, revealed.Cuts = "n", []rqv1.Draw{{Owner: "o"}}, []rqv1.Cut{{UID: "u"}}
	cases := map[string]struct {
		old    rqv1.ReservationStatus
		change func(*rqv1.ReservationStatus)
		wrong  bool
	}{
		"a promise follows the forecast": {rqv1.ReservationStatus{}, func(s *rqv1.ReservationStatus) {
			*s = published
		}, false},
		"reveal":             {published, func(s *rqv1.ReservationStatus) { *s = revealed }, false},
		"other commitment":   {published, func(s *rqv1.ReservationStatus) { s.Lottery.Commitment = "e" }, true},
		"other conflict set": {published, func(s *rqv1.ReservationStatus) { s.ConflictSet[0].GPUs++ }, true},
		"other digest": {published, func(s *rqv1.ReservationStatus) { s.Lottery.ConflictSetDigest = "e" },
			true},
		"activated again": {published, func(s *rqv1.ReservationStatus) { s.ActivatedAt = &metav1.MicroTime{} },
			true},
		"other draws": {revealed, func(s *rqv1.ReservationStatus) { s.Lottery.Draws = nil }, true},
		"other cuts":  {revealed, func(s *rqv1.ReservationStatus) { s.Cuts[0].UID = "v" }, true},
	}
	for name, c := range cases {
		now := c.old.DeepCopy()
		c.change(now)
		if diff := altered(&c.old, now); (diff != "") != c.wrong {
			t.Errorf("%s: %q", name, diff)
		}
	}
}
