package plan

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// refusing has an API server refuse some requests for want of a right.
func refusing(server *clitest.Server, verb, resource string) {
	server.Before = func(request string) error {
		if strings.HasPrefix(request, verb+" "+resource) {
			return clitest.Forbidden(verb, resource)
		}
		return nil
	}
}

// waiting is a Run with a Reservation.
func waiting() (*rqv1.Run, *rqv1.Reservation) {
	run := clitest.RunOf("big", 128, 32, clitest.Waits("InsufficientGPUs", "48 GPUs are short"))
	r := clitest.ReservationOf(&run, 48, clitest.Conflict(rqv1.CutLottery, "org:mm", "mm1", 48, "0.5"))
	clitest.PromisedTo(&run, &r)
	return &run, &r
}

// TestPlanOfOne says when a Run starts as its Reservation has it and, where that is gone or may not be read, as the
// Run does.
func TestPlanOfOne(t *testing.T) {
	for name, c := range map[string]struct {
		args  string
		spoil func(server *clitest.Server, r *rqv1.Reservation)
		code  int
		told  []string
	}{
		"as promised": {args: "big", told: []string{"12:15 UTC", "48 GPUs", "mm/mm1", "50 %"}},
		"for a script": {args: "big -o jsonpath={.earliestStart}/{.deficitGPUs}/{.conflictSet[0].probability}",
			told: []string{"2030-01-02T12:15:01Z/48/0.5"}},
		"whose date has passed": {args: "big -o jsonpath={.countdownSeconds}", told: []string{"0"}},
		"whose Reservation is gone": {args: "big", spoil: func(s *clitest.Server, r *rqv1.Reservation) { s.Delete(r) },
			told: []string{"12:15 UTC", "COULD NOT BE READ", "big-r0"}},
		"whose Reservation may not be read": {args: "big", spoil: func(s *clitest.Server, _ *rqv1.Reservation) {
			refusing(s, "get", "reservations")
		}, told: []string{"12:15 UTC", `cannot get resource "reservations"`}},
		"that is not there": {args: "bog", code: session.ExitError, told: []string{`Run "bog" not found in namespace "rai"`,
			"kubectl runs list -A"}},
		"that may not be read, and its Reservation may": {args: "big", spoil: func(s *clitest.Server, _ *rqv1.Reservation) {
			refusing(s, "get", "runs")
		}, told: []string{"12:15 UTC", "48 GPUs", "mm/mm1", "50 %", `cannot get resource "runs"`}},
		"that may not be read, and has no Reservation": {args: "big", code: session.ExitError,
			spoil: func(s *clitest.Server, r *rqv1.Reservation) {
				s.Delete(r)
				refusing(s, "get", "runs")
			}, told: []string{`cannot get resource "runs"`, "ask an administrator"}},
	} {
		run, r := waiting()
		server := clitest.NewServer(t, run, r)
		if c.spoil != nil {
			c.spoil(server, r)
		}
		said := clitest.Do(t, server, Command, strings.Fields(c.args)...)
		for _, want := range c.told {
			if said.Code != c.code || !strings.Contains(said.Out+said.Err, want) {
				t.Errorf("%s: lacks %q: %+v", name, want, said)
			}
		}
	}
}

// TestPlanOfAll lists what waits, those with a date first, and nothing that does not wait.
func TestPlanOfAll(t *testing.T) {
	run, r := waiting()
	later, never, runs := clitest.RunOf("a-later", 8, 0, run.Status), clitest.RunOf("never", 8, 0, clitest.Poor()),
		clitest.RunOf("runs", 8, 0, clitest.Runs(8))
	date := clitest.ReservationOf(&later, 8)
	date.Spec.EarliestStart = clitest.After(48 * 3600e9)
	clitest.PromisedTo(&later, &date)
	server := clitest.NewServer(t, run, r, &later, &date, &never, &runs)
	said := clitest.Do(t, server, Command, "-o", "name")
	want := "run.rq.davidlangworthy.io/big run.rq.davidlangworthy.io/a-later run.rq.davidlangworthy.io/never"
	if diff := cmp.Diff(want, strings.Join(strings.Fields(said.Out), " ")); diff != "" {
		t.Errorf("%+v\n%s", said, diff)
	}
	refusing(server, "list", "reservations")
	said = clitest.Do(t, server, Command)
	if said.Code != 0 || !strings.Contains(said.Out, `cannot list resource "reservations"`) ||
		!strings.Contains(said.Out, "big") {
		t.Errorf("without Reservations: %+v", said)
	}
	empty := clitest.NewServer(t, &runs)
	for args, want := range map[string]clitest.Said{
		"":                    {Err: "No waiting Runs found in namespace rai.\n"},
		"-A":                  {Err: "No waiting Runs found.\n"},
		"-o jsonpath={.runs}": {Out: "[]"},
	} {
		if diff := cmp.Diff(want, clitest.Do(t, empty, Command, strings.Fields(args)...)); diff != "" {
			t.Errorf("plan %s (-want +got):\n%s", args, diff)
		}
	}
}

// fleetOf are some nodes of eight GPUs in one domain, and a Budget for so many GPUs.
func fleetOf(nodes int, budgeted int32) []client.Object {
	objects := []client.Object{&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "rai"}, Spec: rqv1.BudgetSpec{
		Owner: "org:ai:rai", Envelopes: []rqv1.Envelope{{Name: "west", Flavor: "H100-80GB", Concurrency: budgeted}}}}}
	for i := range nodes {
		gpus := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n" + string(rune('0'+i)),
			Labels: map[string]string{"region": "west", "cluster": "c", "fabric.domain": "A", "gpu.flavor": "H100-80GB"}},
			Status: corev1.NodeStatus{Capacity: gpus, Allocatable: gpus,
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
	}
	return objects
}

// file writes Runs for -f.
func file(t *testing.T, objects ...any) string {
	t.Helper()
	var texts []string
	for _, o := range objects {
		texts = append(texts, clitest.Text(t, o))
	}
	path := filepath.Join(t.TempDir(), "runs.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(texts, "---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func draft(name string, gpus int32) *rqv1.Run {
	return &rqv1.Run{TypeMeta: metav1.TypeMeta{APIVersion: rqv1.GroupVersion.String(), Kind: "Run"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: rqv1.RunSpec{Owner: "org:ai:rai",
			Resources: rqv1.RunResources{GPUType: "H100-80GB", TotalGPUs: gpus}}}
}

// TestPlanSaysWhatSparesComeTo in the pods that the Run gets.
func TestPlanSaysWhatSparesComeTo(t *testing.T) {
	for budgeted, want := range map[int32]string{
		24: "NOTE a spare replaces a whole pod, here of 8 GPUs: spares of 1 are rounded up to 8,",
		4:  "NOTE a spare replaces a whole pod, here of 4 GPUs: spares of 1 are rounded up to 4,",
	} {
		run := draft("spared", min(16, budgeted))
		run.Spec.Spares = clitest.Ptr(int32(1))
		said := clitest.Do(t, clitest.NewServer(t, fleetOf(4, budgeted)...), Command, "-f", file(t, run))
		if got := strings.Join(strings.Fields(said.Out), " "); !strings.Contains(got, want) {
			t.Errorf("with a Budget of %d GPUs it lacks %q: %+v", budgeted, want, said)
		}
	}
}

// TestPlanOfAFile says what would happen, of each Run by itself, and writes nothing.
func TestPlanOfAFile(t *testing.T) {
	server := clitest.NewServer(t, fleetOf(4, 24)...)
	for name, c := range map[string]struct {
		run    *rqv1.Run
		reason string
		gpus   int
	}{
		"fits":               {draft("small", 16), "", 16},
		"more than there is": {draft("large", 40), "NeverFits", 0},
		"more than is paid":  {draft("poor", 32), "InsufficientBudget", 0},
		"another type of GPU": {func() *rqv1.Run { r := draft("a100", 8); r.Spec.Resources.GPUType = "A100"; return r }(),
			"", 0},
	} {
		said := clitest.Do(t, server, Command, "-f", file(t, c.run), "-o", "json")
		var answer planAnswer
		if err := json.Unmarshal([]byte(said.Out), &answer); err != nil || said.Code != 0 {
			t.Fatalf("%s: %v: %+v", name, err, said)
		}
		starts := 0
		if answer.StartsNow != nil {
			starts = answer.StartsNow.GPUs
		}
		if starts != c.gpus || c.reason != "" && answer.Reason != c.reason || (answer.Message == "") != (c.gpus > 0) {
			t.Errorf("%s: it starts with %d GPUs, because of %s: %s", name, starts, answer.Reason, answer.Message)
		}
		if len(answer.Unread) != 1 || !strings.Contains(answer.Unread[0], "has not published it yet") {
			t.Errorf("%s: the configuration was guessed, and that is not told: %v", name, answer.Unread)
		}
	}
	if got := server.Get(draft("small", 0), "metadata", "name"); got != "" {
		t.Error("the Run was submitted")
	}
	there := draft("small", 16)
	there.Namespace, there.UID, there.Status = "rai", "there", clitest.Waits("InsufficientGPUs", "16 GPUs are short")
	server.Set(there)
	if again := clitest.Do(t, server, Command, "-f", file(t, draft("small", 16))); again.Code != 0 ||
		!strings.Contains(again.Out, "now, with 16 GPUs on n0, n1") {
		t.Errorf("a Run of that name exists, and would as well be another: %+v", again)
	}
	server.Delete(there)
	both := clitest.Do(t, server, Command, "-f", file(t, draft("one", 16), draft("two", 16)))
	if both.Code != 0 || strings.Count(both.Out, "now, with 16 GPUs on n0, n1") != 2 {
		t.Errorf("two Runs, each asked about by itself: %+v", both)
	}
}

// TestPlanOfAFileFarBack says the place in line of a Run that would get no date, behind all that have been refused.
func TestPlanOfAFileFarBack(t *testing.T) {
	// A pod that leaves gives a date to whoever is among the first.
	for waiting, place := range map[int]string{31: "", 32: "after 32 other Runs, of 33 Runs that wait for H100-80GB"} {
		objects := fleetOf(1, 800)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "theirs", UID: "theirs"},
			Spec: corev1.PodSpec{NodeName: "n0", Containers: []corev1.Container{{Name: "c",
				Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		grace := int64(30)
		gone := clitest.After(61 * time.Minute) // a minute after the question
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds, pod.Finalizers = &gone, &grace, []string{"test/stays"}
		objects = append(objects, pod)
		for i := range waiting {
			run := draft(fmt.Sprintf("waits-%02d", i), 8)
			run.Namespace, run.UID = "rai", types.UID(run.Name)
			run.CreationTimestamp = clitest.After(-time.Hour)
			run.Status = clitest.Waits("InsufficientGPUs", "8 GPUs are short")
			run.Status.Refusal = &rqv1.RunRefusal{Reason: "InsufficientGPUs", WantedGPUs: 8, ShortGPUs: 8}
			objects = append(objects, run)
		}
		other := draft("other-type", 8)
		other.Namespace, other.UID, other.Spec.Resources.GPUType = "rai", "other-type", "A100"
		other.Status = clitest.Poor()
		server := clitest.NewServer(t, append(objects, other)...)
		said := clitest.Do(t, server, Command, "-f", file(t, draft("next", 8)))
		if dated := place == ""; said.Code != 0 || strings.Contains(said.Out, "IN LINE") == dated ||
			strings.Contains(said.Out, "known-release") != dated || !strings.Contains(said.Out, place) {
			t.Errorf("behind %d: %+v", waiting, said)
		}
		said = clitest.Do(t, server, Command, "-f", file(t, draft("next", 8)), "-o",
			"jsonpath={.queue.ahead} {.queue.of} {.confidence}")
		want := map[bool]string{true: "  known-release", false: "32 33 "}[place == ""]
		if diff := cmp.Diff(want, said.Out); diff != "" {
			t.Errorf("behind %d, as data (-want +got):\n%s\n%s", waiting, diff, said.Err)
		}
	}
}

// TestPlanOfAFileThatIsRefused says why, and what to do.
func TestPlanOfAFileThatIsRefused(t *testing.T) {
	budgetAlone := file(t, &rqv1.Budget{TypeMeta: metav1.TypeMeta{APIVersion: rqv1.GroupVersion.String(), Kind: "Budget"},
		ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: rqv1.BudgetSpec{Owner: "org"}})
	for name, c := range map[string]struct {
		args           []string
		verb, resource string
		code           int
		told           string
	}{
		"a name besides": {args: []string{"-f", "x", "big"}, code: session.ExitUsage,
			told: "leave out -A and the name"},
		"no Run in it": {args: []string{"-f", budgetAlone}, code: session.ExitError, told: "there is no Run in"},
		"no file": {args: []string{"-f", "/nowhere.yaml"}, code: session.ExitError,
			told: "cannot read /nowhere.yaml"},
		"no right to submit": {args: []string{"-f", file(t, draft("x", 8))}, verb: "create", resource: "runs",
			code: session.ExitError, told: `cannot create resource "runs"`},
	} {
		server := clitest.NewServer(t, fleetOf(1, 8)...)
		if c.verb != "" {
			refusing(server, c.verb, c.resource)
		}
		said := clitest.Do(t, server, Command, c.args...)
		if said.Code != c.code || said.Out != "" || !strings.Contains(said.Err, c.told) {
			t.Errorf("%s: %+v lacks %q", name, said, c.told)
		}
	}
}

// TestChangesThatWouldHelp are found for a Run that waits, and not looked for where it runs.
func TestChangesThatWouldHelp(t *testing.T) {
	run := draft("wide", 24)
	run.Namespace, run.UID, run.Status = "rai", "wide-uid", clitest.Waits("InsufficientGPUs", "8 GPUs are short")
	server := clitest.NewServer(t, append(fleetOf(2, 24), run)...)
	said := clitest.Do(t, server, Command, "wide", "--changes")
	if said.Code != 0 || !strings.Contains(said.Out, "(16 GPUs)") {
		t.Errorf("with 16 GPUs it would start: %+v", said)
	}
	run.Status = clitest.Runs(24)
	server.Set(run)
	if clitest.Do(t, server, Command, "wide", "--changes"); len(server.Asked("list pods")) != 1 {
		t.Errorf("pods were asked for %d times", len(server.Asked("list pods")))
	}
}
