package list

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// twoRuns are a Run that runs and one that waits, and one of somebody else's namespace.
func twoRuns() []client.Object {
	runs, waits := clitest.RunOf("runs", 16, 0, clitest.Runs(16)), clitest.RunOf("waits", 64, 0,
		clitest.Waits("InsufficientGPUs", "short by 8 GPUs"))
	waits.Spec.Submitter = "ada"
	waits.Labels = map[string]string{"team": "vision"}
	other := clitest.RunOf("elsewhere", 8, 0, clitest.Runs(8))
	other.Namespace = "mm"
	return []client.Object{&runs, &waits, &other}
}

// namesIn are the first words of a table's lines, without its header.
func namesIn(table string) []string {
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		out = append(out, strings.Fields(line)[0])
	}
	return out
}

func TestWhichRunsAreListed(t *testing.T) {
	server := clitest.NewServer(t, twoRuns()...)
	for args, want := range map[string]string{
		"":                                      "runs waits",
		"--phase pending":                       "waits",
		"--phase Running,Pending":               "runs waits",
		"-l team=vision":                        "waits",
		"-l team!=vision":                       "runs",
		"-A --phase Running -o name":            "elsewhere runs",
		"-n mm -o name":                         "elsewhere",
		"--phase Completed -o name":             "",
		"--sort-by gpus":                        "runs waits",
		"--sort-by phase":                       "waits runs",
		"--owner org:ai:rai":                    "runs waits",
		"--mine":                                "waits",
		"--owner org:*":                         "runs waits",
		"--owner org:mm -o name":                "",
		"-o jsonpath={.items[*].metadata.name}": "runs waits",
	} {
		said := clitest.Do(t, server, Command, strings.Fields(args)...)
		var got []string
		switch {
		case strings.Contains(args, "jsonpath"):
			got = strings.Fields(said.Out)
		case strings.Contains(args, "name"):
			for _, line := range strings.Fields(said.Out) {
				got = append(got, strings.TrimPrefix(line, "run.rq.davidlangworthy.io/"))
			}
			slices.Sort(got)
		default:
			got = namesIn(said.Out)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); said.Code != 0 || diff != "" {
			t.Errorf("list %s: code %d, %s (-want +got):\n%s", args, said.Code, said.Err, diff)
		}
	}
}

// A program gets whole objects, in a List that kubectl can apply again, also when there are none.
func TestListsForPrograms(t *testing.T) {
	for name, objects := range map[string][]client.Object{"two Runs": twoRuns()[:2], "none": nil} {
		server := clitest.NewServer(t, objects...)
		for _, format := range []string{"json", "yaml"} {
			said := clitest.Do(t, server, Command, "-o", format)
			var list struct {
				APIVersion, Kind string
				Items            []rqv1.Run
			}
			read := json.Unmarshal
			if format == "yaml" {
				read = func(text []byte, into any) error { return yaml.Unmarshal(text, into) }
			}
			if err := read([]byte(said.Out), &list); err != nil || said.Err != "" || list.Kind != "List" {
				t.Errorf("%s, -o %s: %v, %q, kind %q", name, format, err, said.Err, list.Kind)
			}
			if list.Items == nil || len(list.Items) != len(objects) {
				t.Errorf("%s, -o %s: %d Runs, and items is null: %v", name, format, len(list.Items), list.Items == nil)
			}
			for i := range list.Items {
				if run := &list.Items[i]; run.Kind != "Run" || run.APIVersion != rqv1.GroupVersion.String() {
					t.Errorf("%s, -o %s: item %d is a %q of %q", name, format, i, run.Kind, run.APIVersion)
				}
			}
		}
	}
}

// Nothing is no failure: nothing is printed where a program reads, and people are told where it was looked for.
func TestNothingToList(t *testing.T) {
	server := clitest.NewServer(t)
	for args, want := range map[string]string{"": "No Runs found in namespace rai.\n", "-A": "No Runs found.\n"} {
		said := clitest.Do(t, server, Command, strings.Fields(args)...)
		if diff := cmp.Diff(clitest.Said{Err: want}, said); diff != "" {
			t.Errorf("list %s (-want +got):\n%s", args, diff)
		}
	}
}

// What may not be read is named, with what to do; spares that may not be counted are shown as not known.
func TestListWithoutRights(t *testing.T) {
	guarded := clitest.RunOf("guarded", 64, 32, clitest.Runs(64))
	guarded.Spec.Spares = clitest.Ptr[int32](4)
	server := clitest.NewServer(t, &guarded)
	for refused, c := range map[string]struct {
		code int
		out  string
		err  []string
	}{
		"runs": {session.ExitError, "", []string{`cannot list resource "runs" in the namespace "rai"`,
			"ask an administrator for the right, or choose another namespace with -n"}},
		"leases": {0, "?/8", []string{"GPU leases, which say what stands by, could not be read",
			`cannot list resource "leases"`}},
	} {
		server.Before = func(request string) error {
			if request == "list "+refused {
				return clitest.Forbidden("list", refused)
			}
			return nil
		}
		said := clitest.Do(t, server, Command)
		if said.Code != c.code || !strings.Contains(said.Out, c.out) || c.out == "" && said.Out != "" {
			t.Errorf("without %s: code %d, printed %q", refused, said.Code, said.Out)
		}
		for _, want := range c.err {
			if !strings.Contains(said.Err, want) {
				t.Errorf("without %s: %q lacks %q", refused, said.Err, want)
			}
		}
	}
	if asked := server.Asked("list leases"); len(asked) != 1 {
		t.Errorf("GPU leases were asked for %d times", len(asked))
	}
}

// Spares are counted by who has the Run's UID: those of a namesake that is gone do not stand by.
func TestSparesOfANamesake(t *testing.T) {
	guarded := clitest.RunOf("guarded", 64, 32, clitest.Runs(64))
	guarded.Spec.Spares = clitest.Ptr[int32](8)
	old := *guarded.DeepCopy()
	old.UID = "of the one before"
	objects := []client.Object{&guarded}
	for i, run := range []*rqv1.Run{&guarded, &old, &guarded} {
		lease := clitest.As(clitest.LeaseOf(run, string(rune('a'+i)), int32(i), "n"), rqv1.RoleSpare, i)
		lease.Labels[rqv1.LabelRole] = string(rqv1.RoleSpare)
		if i == 2 {
			lease = clitest.Closed(lease, time.Minute, rqv1.ClosedSwap)
		}
		objects = append(objects, &lease)
	}
	said := clitest.Do(t, clitest.NewServer(t, objects...), Command)
	if !strings.Contains(said.Out, " 8/16 ") {
		t.Errorf("of 16 GPUs 8 stand by: %s%s", said.Out, said.Err)
	}
}

// A Run that is too far back in line to have a date has its place there.
func TestAPlaceInLineIsListed(t *testing.T) {
	status := clitest.Waits("InsufficientGPUs", "8 GPUs are needed")
	status.Queue = &rqv1.RunQueue{Ahead: 214, Of: 300, At: clitest.After(0)}
	back := clitest.RunOf("back", 8, 0, status)
	said := clitest.Do(t, clitest.NewServer(t, &back), Command, "-o", "wide")
	if said.Code != 0 || !strings.Contains(said.Out, "after 214 other Runs") {
		t.Errorf("its place is not told: %q", said.Out)
	}
	said = clitest.Do(t, clitest.NewServer(t, &back), Command, "-o", "jsonpath={.items[0].status.queue.ahead}")
	if !strings.Contains(said.Out, "214") {
		t.Errorf("its place is not among the data: %q", said.Out)
	}
	back.Status.Queue.Ahead = 0
	said = clitest.Do(t, clitest.NewServer(t, &back), Command, "-o", "wide")
	if said.Code != 0 || strings.Contains(said.Out, "older") {
		t.Errorf("the first in line is after nobody: %q", said.Out)
	}
}

// Names, owners and messages of any length and script keep to one line a Run, and no message rules the terminal.
func TestWhatIsListedKeepsToItsLine(t *testing.T) {
	long := clitest.RunOf(strings.Repeat("n", 52), 1000000, 0, clitest.Waits("InsufficientGPUs",
		"待機中 – zwölf GPUs fehlen\n\x1b[2Jdeleted \x1b]0;title\x07"+strings.Repeat("é", 300)))
	long.Spec.Owner = rqv1.Owner("org:" + strings.Repeat("o", 249))
	future := clitest.RunOf("future", 8, 0, rqv1.RunStatus{})
	future.CreationTimestamp = metav1.NewTime(clitest.Noon.Add(24 * time.Hour))
	said := clitest.Do(t, clitest.NewServer(t, &long, &future), Command, "-o", "wide")
	lines := strings.Split(strings.TrimSpace(said.Out), "\n")
	if said.Code != 0 || len(lines) != 3 {
		t.Errorf("%d lines, want 3: %q", len(lines), said.Out)
	}
	if strings.ContainsAny(said.Out, "\x1b\x07") {
		t.Errorf("a message rules the terminal: %q", said.Out)
	}
	if !strings.Contains(said.Out, long.Name) || !strings.Contains(said.Out, string(long.Spec.Owner)) {
		t.Errorf("names are cut off: %q", said.Out)
	}
}

// A script needs no header, and a list that is watched comes again when it has changed.
func TestListsThatGoOn(t *testing.T) {
	server := clitest.NewServer(t, twoRuns()...)
	said := clitest.Do(t, server, Command, "--no-headers")
	if got := strings.Fields(said.Out); len(got) == 0 || got[0] != "runs" {
		t.Errorf("%+v", said)
	}
	looks := 0
	server.Before = func(request string) error {
		if request != "list runs" {
			return nil
		}
		switch looks++; looks {
		case 3:
			waits := clitest.RunOf("waits", 64, 0, clitest.Runs(64))
			server.Set(&waits)
		case 6:
			return clitest.Forbidden("list", "runs")
		}
		return nil
	}
	said = clitest.Do(t, server, quick, "--watch")
	tables := strings.Split(said.Out, "\n\n")
	if len(tables) != 2 || !strings.Contains(tables[0], "Pending") || strings.Contains(tables[1], "Pending") ||
		looks != 6 {
		t.Errorf("after %d looks: %+v", looks, said)
	}
}

// quick lists again at once.
func quick(s *session.Session) *cobra.Command {
	return (&runList{Session: s, every: time.Millisecond}).command()
}

// forgotten is an API server that has no Runs and does not answer any more after some looks.
func forgotten(t *testing.T, looks int) *clitest.Server {
	server := clitest.NewServer(t)
	server.Before = func(string) error {
		if looks--; looks < 0 {
			return clitest.Forbidden("list", "runs")
		}
		return nil
	}
	return server
}

// That there are no Runs is said once while that stays so.
func TestNothingIsWatched(t *testing.T) {
	said := clitest.Do(t, forgotten(t, 4), quick, "--watch")
	if n := strings.Count(said.Err, "No Runs found in namespace rai.\n"); n != 1 {
		t.Errorf("said %d times: %+v", n, said)
	}
}
