package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// ofClass gives a Run a PriorityClass.
func ofClass(name string) func(*rqv1.Run) {
	return func(r *rqv1.Run) { r.Spec.PriorityClassName = name }
}

// paidByALesserOne has one of six Runs be drawn, five of which have a high priority: the sixth ends whoever is drawn,
// and the record says so, which "kubectl runs explain" checks. A record that says something else is found out.
func paidByALesserOne(s *site) {
	high, low := s.classes()
	s.addNodes("d", 6)
	s.fund("mine", s.envelope("all", 48))
	s.fund("wanted", s.envelope("all", 8))
	for i := range 5 {
		s.submit(fmt.Sprintf("hero-%d", i), 8, s.by("mine"), ofClass(high))
	}
	s.submit("batch", 8, s.by("mine"), ofClass(low))
	for _, name := range []string{"batch", "hero-0", "hero-1", "hero-2", "hero-3", "hero-4"} {
		s.await(name, rqv1.RunRunning, "bound 8 GPUs")
	}
	s.ranFor("hero-4", 2*time.Second)
	s.submit("wanted", 8, s.by("wanted"))
	s.await("batch", rqv1.RunFailed, "cut by lottery for Run "+s.namespace+"/wanted")
	s.await("wanted", rqv1.RunRunning, "bound 8 GPUs")
	for i := range 5 {
		if run, err := s.get(fmt.Sprintf("hero-%d", i)); err != nil || run.Status.Phase != rqv1.RunRunning {
			s.t.Errorf("hero-%d is %s (%v)", i, run.Status.Phase, err)
		}
	}
	record := s.awaitReservation("wanted", inState(rqv1.ReservationReleased))
	batch := rqv1.NamespacedName{Namespace: s.namespace, Name: "batch"}
	drawn := record.Status.Lottery.Draws[0]
	if drawn.Run != batch {
		if diff := cmp.Diff([]rqv1.NamespacedName{batch}, drawn.PaidBy); diff != "" {
			s.t.Errorf("who pays for %s (-want +got):\n%s", drawn.Run.Name, diff)
		}
	}
	for _, e := range record.Status.ConflictSet {
		if want := map[bool]string{true: "1", false: "0"}[e.Run == batch]; e.Probability != want || e.Priority == nil {
			s.t.Errorf("%s ends with probability %s, want %s, by priority %v", e.Run.Name, e.Probability, want, e.Priority)
		}
	}
	told := s.runs("explain --verify " + record.Name + " -n " + s.namespace)
	if !strings.Contains(told, "valid") || drawn.Run != batch && !strings.Contains(told, "paid by "+s.namespace+"/batch") {
		s.t.Errorf("explain says:\n%s", told)
	}
	forged := record.DeepCopy()
	forged.APIVersion, forged.Kind = rqv1.GroupVersion.String(), "Reservation"
	forged.Status.Lottery.Draws[0].PaidBy = []rqv1.NamespacedName{{Namespace: s.namespace, Name: "hero-0"}}
	at := slices.IndexFunc(forged.Status.Cuts, func(c rqv1.Cut) bool { return c.Run == batch })
	forged.Status.Cuts[at].Run.Name = "hero-0"
	text, err := yaml.Marshal(forged)
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(s.t.TempDir(), "forged.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	if said := command(s.t, s.ControlPlane, "", "runs explain --verify "+file); said.code == 0 ||
		!strings.Contains(said.out, "which is not lower") {
		s.t.Errorf("a forged record: code %d\n%s%s", said.code, said.out, said.err)
	}
}
