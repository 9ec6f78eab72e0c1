package controllers

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// believing believes a clock unless it jumps.
func believing(clock clock.Clock) *clockDoubt {
	d := newClockDoubt(clock)
	d.agreed = true
	return d
}

// TestAClockIsBelievedOnceTheAPIServerAgrees and not before, whatever it showed when the process began.
func TestAClockIsBelievedOnceTheAPIServerAgrees(t *testing.T) {
	for name, test := range map[string]struct {
		ahead time.Duration
		err   error
		want  bool
	}{
		"the same time":           {want: true},
		"a little ahead":          {ahead: leap, want: true},
		"behind":                  {ahead: -time.Hour, want: true},
		"ahead":                   {ahead: leap + time.Second},
		"ahead by a year":         {ahead: 365 * 24 * time.Hour},
		"no answer":               {err: broken500},
		"no answer, and it is so": {ahead: time.Hour, err: broken500},
	} {
		t.Run(name, func(t *testing.T) {
			kube, clock := fake.NewClientset(), clocktesting.NewFakeClock(noon.Add(test.ahead))
			answers, right := test.err, noon
			kube.PrependReactor("create", "configmaps", func(a kubetesting.Action) (bool, runtime.Object, error) {
				if dry := a.(kubetesting.CreateActionImpl).CreateOptions.DryRun; !slices.Equal(dry, []string{metav1.DryRunAll}) {
					t.Errorf("something is made: %v", dry)
				}
				return true, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(right)}}, answers
			})
			d, told := newClockDoubt(clock), false
			if !d.doubts() {
				t.Error("it is believed before anybody was asked")
			}
			d.compare(t.Context(), kube, &told)
			if d.doubts() == test.want {
				t.Errorf("it is doubted: %v", d.doubts())
			}
			answers = nil
			clock.SetTime(right)
			if d.settle(t.Context(), kube); d.doubts() {
				t.Error("it is doubted although it is right by now")
			}
			if d.look(); d.doubts() {
				t.Error("it is doubted although it has not jumped")
			}
			if clock.Step(leap + time.Second); !d.doubts() {
				t.Error("it is believed although it has jumped")
			}
		})
	}
}

// TestNothingGoesForItsAgeWhileTheClockIsDoubted: neither Leases nor Reservations nor Runs.
func TestNothingGoesForItsAgeWhileTheClockIsDoubted(t *testing.T) {
	s := newServer(t, closed("b", "x"))
	old := reserved(rqv1.ReservationReleased, "")
	old.ObjectMeta = named("old", "old")
	old.Status.EndedAt = &metav1.Time{Time: noon}
	if err := s.kinds.Create(t.Context(), old.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	s.written()
	l, clock := keeping(t, s)
	l.doubt.agreed = false
	if err := l.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.book.Begin(noon)
	clock.SetTime(noon.AddDate(1, 0, 0))
	looked := 0
	e := newExpiries(time.Hour, l.doubt, func(types.NamespacedName) { looked++ })
	e.note(endedRun("ended", 10, 5))
	d := &dates{client: s.kinds, clock: clock, doubt: l.doubt, reservations: newReservationAges(), retention: time.Hour}
	d.reservations.note(old)
	pass := func() {
		l.fold(l.through(l.retention))
		l.storeSettled(t.Context())
		d.tidy(t.Context())
		e.expire()
	}
	if pass(); looked > 0 {
		t.Error("a Run is looked at")
	}
	if wrote := s.written(); len(wrote) > 0 {
		t.Errorf("written by a clock that may be ahead: %v", wrote)
	}
	l.doubt.agreed = true
	pass()
	if wrote := s.written(); len(wrote) != 3 || looked != 1 {
		t.Errorf("written by a clock that is believed: %v, and %d Runs are looked at", wrote, looked)
	}
}
