package controllers

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics/testutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

// reserved is a Reservation of train.
func reserved(state rqv1.ReservationState, reason string) *rqv1.Reservation {
	return &rqv1.Reservation{ObjectMeta: named("train-r0", "r"),
		Spec: rqv1.ReservationSpec{RunRef: rqv1.NamespacedName{Namespace: "ns", Name: "train"},
			EarliestStart: metav1.NewTime(noon)},
		Status: rqv1.ReservationStatus{State: state, Reason: reason, Lottery: &rqv1.Lottery{},
			EndedAt: &metav1.Time{Time: noon}}}
}

// TestWriteReservation writes in each way, over what is stored or is not, and reads what is stored then.
func TestWriteReservation(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	was, next := reserved(rqv1.ReservationPending, "was"), reserved(rqv1.ReservationReleased, "is")
	next.Spec.RunRef.Name = "other"
	for name, c := range map[string]struct {
		verb   lifecycle.Verb
		stored *rqv1.Reservation
		behind bool
		want   string // the Run and the reason that are stored
		fails  bool
	}{
		"a new one":            {verb: lifecycle.Create, want: "other is"},
		"one that is there":    {verb: lifecycle.Create, stored: was, want: "train was"},
		"the spec":             {verb: lifecycle.Update, stored: was, want: "other was"},
		"the status":           {verb: lifecycle.UpdateStatus, stored: was, want: "train is"},
		"one that has changed": {verb: lifecycle.UpdateStatus, stored: was, behind: true, fails: true},
		"of one that is gone":  {verb: lifecycle.UpdateStatus, fails: true},
		"the spec of none":     {verb: lifecycle.Update, fails: true},
	} {
		var there []client.Object
		if c.stored != nil {
			there = append(there, c.stored.DeepCopy())
		}
		kinds := ours(t, there...)
		s := reservationWriter{book: book.New(args), client: kinds, events: events.NewFakeRecorder(10)}
		w := &lifecycle.Write{Verb: c.verb, Reservation: next.DeepCopy()}
		if c.verb != lifecycle.Create {
			w.Reservation.ResourceVersion = map[bool]string{true: "1", false: "999"}[c.behind] // which the fake begins with
		}
		got, err := s.WriteReservation(t.Context(), w)
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		stored := &rqv1.Reservation{}
		if err := kinds.Get(t.Context(), client.ObjectKeyFromObject(next), stored); err != nil {
			t.Fatal(err)
		}
		if is := stored.Spec.RunRef.Name + " " + stored.Status.Reason; is != c.want ||
			got.ResourceVersion != stored.ResourceVersion {
			t.Errorf("%s: %q is stored, want %q; version %s, and %s is returned", name, is, c.want, stored.ResourceVersion,
				got.ResourceVersion)
		}
	}
}

// TestWhatAReservationTells has one written in each of its states.
func TestWhatAReservationTells(t *testing.T) {
	revealed := reserved(rqv1.ReservationActivating, "2 Runs go")
	revealed.Status.Lottery.Nonce = "00"
	stuck := []book.Stuck{{Node: "n0"}}
	for name, c := range map[string]struct {
		verb  lifecycle.Verb
		r     *rqv1.Reservation
		stuck []book.Stuck
		want  []string // reasons
	}{
		"made":    {verb: lifecycle.Create, r: reserved("", ""), want: []string{"Reserved"}},
		"moved":   {verb: lifecycle.Update, r: reserved(rqv1.ReservationPending, "")},
		"waiting": {verb: lifecycle.UpdateStatus, r: reserved(rqv1.ReservationPending, "later")},
		"published": {verb: lifecycle.UpdateStatus, r: reserved(rqv1.ReservationActivating, ""),
			want: []string{"Activating"}},
		"revealed": {verb: lifecycle.UpdateStatus, r: revealed, want: []string{"Cut"}},
		"around the stuck": {verb: lifecycle.UpdateStatus, r: revealed, stuck: stuck,
			want: []string{"PlannedAgain", "PodStuck"}},
		"released": {verb: lifecycle.UpdateStatus, r: reserved(rqv1.ReservationReleased, "it has started"),
			want: []string{"Released"}},
		"canceled": {verb: lifecycle.UpdateStatus, r: reserved(rqv1.ReservationCanceled, "it is gone"),
			want: []string{"Canceled"}},
	} {
		recorder := events.NewFakeRecorder(10)
		s := reservationWriter{events: recorder}
		s.tellReservation(c.verb, c.r, c.stuck)
		s.tellNodes(c.r, c.stuck)
		var got []string
		for _, event := range told(recorder) {
			got = append(got, strings.Fields(event)[1])
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestWhatIsGivenBackIsNotCutInVain: of an activation by which its Run does not start, the cuts alone count.
func TestWhatIsGivenBackIsNotCutInVain(t *testing.T) {
	metrics.Register()
	vain := func() float64 {
		n, err := testutil.GetCounterMetricValue(metrics.CutsInVain.WithLabelValues(string(rqv1.CanceledVictimStayed)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before, r := vain(), reserved(rqv1.ReservationCanceled, "a pod has stayed")
	r.Status.Cause = rqv1.CanceledVictimStayed
	r.Status.Cuts = []rqv1.Cut{{Action: rqv1.CutReturn}, {Action: rqv1.CutLottery}, {Action: rqv1.CutReturn}}
	reservationWriter{events: events.NewFakeRecorder(10)}.tellReservation(lifecycle.UpdateStatus, r, nil)
	if got := vain() - before; got != 1 {
		t.Errorf("%v are cut in vain, want 1", got)
	}
}

// TestADateThatMovesIsCounted writes Reservations whose date has moved or not; what is not written counts for nothing.
func TestADateThatMovesIsCounted(t *testing.T) {
	metrics.Register()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	counted := func() (n [2]float64) {
		for i, direction := range []string{"earlier", "later"} {
			var err error
			if n[i], err = testutil.GetCounterMetricValue(metrics.PromiseRevisions.WithLabelValues(direction)); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	for name, c := range map[string]struct {
		was    time.Time
		behind bool
		want   [2]float64
	}{
		"a first date": {},
		"the same":     {was: noon},
		"earlier":      {was: noon.Add(time.Minute), want: [2]float64{1, 0}},
		"later":        {was: noon.Add(-time.Minute), want: [2]float64{0, 1}},
		"not written":  {was: noon.Add(time.Minute), behind: true},
	} {
		s := reservationWriter{book: book.New(args), events: events.NewFakeRecorder(10),
			client: ours(t, reserved(rqv1.ReservationPending, "was"))}
		w := &lifecycle.Write{Verb: lifecycle.Update, Reservation: reserved(rqv1.ReservationPending, "is"), Was: c.was}
		w.Reservation.ResourceVersion = map[bool]string{true: "1", false: "999"}[c.behind]
		before := counted()
		if _, err := s.WriteReservation(t.Context(), w); (err != nil) != c.behind {
			t.Errorf("%s: %v", name, err)
		}
		after := counted()
		if got := [2]float64{after[0] - before[0], after[1] - before[1]}; got != c.want {
			t.Errorf("%s: earlier and later count %v more, want %v", name, got, c.want)
		}
	}
}
