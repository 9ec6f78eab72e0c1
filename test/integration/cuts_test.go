package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestBrakesOnCuts has the commands pause cuts, call a start off and let cuts go on, and the scheduler heed them: the
// Run gets another date, and starts by that.
func TestBrakesOnCuts(t *testing.T) {
	t.Parallel()
	s := newSite(t, ownCluster(t, withoutElection, led("5s")), 1, 2, 100)
	s.startScheduler()
	s.submit("first", 16, inPods(8), checkpoint(time.Minute))
	s.await("first", rqv1.RunRunning, "bound 16 GPUs")
	s.runs("cuts pause --because testing")
	s.submit("second", 16, inPods(8), checkpoint(time.Minute))
	s.awaitReservation("second", func(r *rqv1.Reservation) error {
		if !strings.Contains(r.Status.Reason, "cuts are paused by") {
			return fmt.Errorf("it says %q", r.Status.Reason)
		}
		return nil
	})
	if out := s.runs("cuts status"); !strings.Contains(out, "cuts are paused by") || !strings.Contains(out, "testing") {
		t.Errorf("kubectl runs cuts status: %s", out)
	}
	s.runs(fmt.Sprintf("cuts call-off %s/second-r0 --because enough", s.namespace))
	r := s.awaitReservation("second", inState(rqv1.ReservationCanceled))
	if !strings.Contains(r.Status.CalledOff, "enough") {
		t.Errorf("the Reservation says %q", r.Status.CalledOff)
	}
	s.runs("cuts resume")
	s.await("second", rqv1.RunRunning, "bound 16 GPUs")
	r = s.awaitReservation("second", inState(rqv1.ReservationReleased))
	same(t, "the other Reservation is the first", false, r.Name == "second-r0")
	s.settled()
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
