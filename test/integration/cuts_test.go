package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/brake"
)

// TestBrakesOnCuts pauses cuts past a date, kills the scheduler meanwhile, lets them go on, and calls an activation off
// while its victim takes its time.
func TestBrakesOnCuts(t *testing.T) {
	t.Parallel()
	s := newSite(t, ownCluster(t, withoutElection, led("5s")), 1, 2, 100)
	s.startScheduler()
	said := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "jobtree-system", Name: brake.ConfigMap}}
	s.submit("first", 16, inPods(8), checkpoint(time.Minute))
	s.await("first", rqv1.RunRunning, "bound 16 GPUs")

	s.runs("cuts pause --because testing")
	s.submit("second", 16, inPods(8), checkpoint(time.Minute)) // which shields it from the first for as long
	waits := func() error {
		first, err := s.get("first")
		if err == nil {
			err = is(first, rqv1.RunRunning, "bound 16 GPUs")
		}
		return err
	}
	s.awaitReservation("second", func(r *rqv1.Reservation) error {
		if !strings.Contains(r.Status.Reason, "cuts are paused by") || time.Now().Before(r.Spec.EarliestStart.Time) {
			return fmt.Errorf("at %s it says %q", r.Spec.EarliestStart, r.Status.Reason)
		}
		return nil
	})
	if err := s.Scheduler.Kill(); err != nil {
		t.Fatal(err)
	}
	s.startScheduler()
	throughout(t, 5*time.Second, "nobody is to be cut while cuts are paused", waits)
	if out := s.runs("cuts status"); !strings.Contains(out, "cuts are paused by") || !strings.Contains(out, "testing") {
		t.Errorf("kubectl runs cuts status: %s", out)
	}
	s.runs("cuts resume")
	s.await("second", rqv1.RunRunning, "bound 16 GPUs")
	s.awaitReservation("second", inState(rqv1.ReservationReleased))

	// A word that is none brakes, and says so.
	edit(s, said, func(c *corev1.ConfigMap) { c.Data = map[string]string{"paused": "perhaps"} })
	s.awaitReservation("first", func(r *rqv1.Reservation) error {
		if !strings.Contains(r.Status.Reason, "has entries that cannot be read") {
			return fmt.Errorf("it says %q", r.Status.Reason)
		}
		return nil
	})
	s.runs(fmt.Sprintf("cuts call-off %s/first-r0 --because enough", s.namespace))
	r := s.awaitReservation("first", inState(rqv1.ReservationCanceled))
	if !strings.Contains(r.Status.CalledOff, "enough") {
		t.Errorf("the Reservation says %q", r.Status.CalledOff)
	}
	s.runs("cuts resume")
	s.awaitReservation("first", func(r *rqv1.Reservation) error {
		if r.Name == "first-r0" {
			return errors.New("it has no other date yet")
		}
		if early := r.CreationTimestamp.Sub(s.endOf("first-r0")); early < 4*time.Second {
			t.Errorf("it has another date after %s", early)
		}
		return nil
	})
	s.settled()
}

// endOf returns when a Reservation ended.
func (s *site) endOf(name string) time.Time {
	s.t.Helper()
	r := &rqv1.Reservation{}
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, r); err != nil {
		s.t.Fatal(err)
	}
	return r.Status.EndedAt.Time
}

// TestWhoMayBrake has a user without rights, and one with the Role that is installed, pause cuts.
func TestWhoMayBrake(t *testing.T) {
	t.Parallel()
	c := apiServer(t)
	admin, err := client.New(c.AdminConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const user = "may-brake"
	pause := "runs cuts pause --as " + user
	if refused := command(t, c, "", pause); refused.code == 0 || !strings.Contains(refused.err, "cannot patch resource") {
		t.Errorf("without rights: %+v", refused)
	}
	if err := admin.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "jobtree-system", Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "jobtree-cuts-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the right to brake", func() error {
		if done := command(t, c, "", pause); done.code != 0 {
			return errors.New(done.err)
		}
		return nil
	})
	mustCommand(t, c, "", "runs cuts resume --as "+user)
}
