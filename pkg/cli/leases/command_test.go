package leases

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// ledgerOf are GPU leases: of a Run that runs, one of which has closed, of one that is gone, and of another namespace.
func ledgerOf() []client.Object {
	trainer, gone := clitest.RunOf("trainer", 16, 0, clitest.Runs(16)), clitest.RunOf("gone", 8, 0, clitest.Runs(8))
	other := clitest.RunOf("other", 8, 0, clitest.Runs(8))
	other.Namespace = "mm"
	var out []client.Object
	for _, l := range []rqv1.Lease{clitest.LeaseOf(&trainer, "t-0", 0, "a1"),
		clitest.Closed(clitest.LeaseOf(&trainer, "t-1", 1, "a2"), 10*time.Minute, rqv1.ClosedNodeFailure),
		clitest.Closed(clitest.LeaseOf(&gone, "g-0", 0, "a3"), 30*time.Minute, rqv1.ClosedDeleted),
		clitest.LeaseOf(&other, "o-0", 0, "a4")} {
		l.Labels = map[string]string{rqv1.LabelRun: l.Spec.RunRef.Name}
		if l.Name == "o-0" {
			l.Spec.Payer = rqv1.LeasePayer{Budget: "mm", Owner: "org:ai:mm"}
		}
		out = append(out, l.DeepCopy())
	}
	return out
}

func TestWhichLeasesAreListed(t *testing.T) {
	server := clitest.NewServer(t, ledgerOf()...)
	for args, want := range map[string]string{
		"":                        "g-0 t-0 t-1",
		"trainer":                 "t-0 t-1",
		"gone":                    "g-0", // its Run is gone, the record is not
		"--open":                  "t-0",
		"--closed":                "g-0 t-1",
		"-A --open":               "o-0 t-0",
		"-A --owner org:ai:mm":    "o-0",
		"-A --owner org:ai*":      "o-0 g-0 t-0 t-1",
		"-A --owner org:a":        "",
		"--since 25m":             "t-0",
		"--since 45m":             "g-0 t-0",
		"--since 2030-01-02":      "g-0 t-0 t-1",
		"--since 2031-01-01":      "t-0", // those that are open may be then
		"never-was":               "",
		"trainer --closed":        "t-1",
		"trainer --owner nobody*": "",
	} {
		said := clitest.Do(t, server, Command, append(strings.Fields(args), "-o", "name")...)
		got := strings.Fields(strings.ReplaceAll(said.Out, "lease.rq.davidlangworthy.io/", ""))
		if diff := cmp.Diff(want, strings.Join(got, " ")); said.Code != 0 || diff != "" {
			t.Errorf("leases %s: code %d, %s (-want +got):\n%s", args, said.Code, said.Err, diff)
		}
	}
}

// A spreadsheet, a program and a person are told of the same GPU leases, and of the same GPU-hours.
func TestLeasesInEveryFormat(t *testing.T) {
	server := clitest.NewServer(t, ledgerOf()...)
	rows, err := csv.NewReader(strings.NewReader(clitest.Do(t, server, Command, "-A", "-o", "csv").Out)).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	var list struct{ Items []rqv1.Lease }
	if err := json.Unmarshal([]byte(clitest.Do(t, server, Command, "-A", "-o", "json").Out), &list); err != nil {
		t.Fatal(err)
	}
	wide := strings.Split(strings.TrimSpace(clitest.Do(t, server, Command, "-A", "-o", "wide").Out), "\n")
	if len(list.Items) != 4 || len(wide) != 5 {
		t.Fatalf("%d GPU leases as data and %d lines", len(list.Items), len(wide))
	}
	header := map[string]int{}
	for i, name := range rows[0] {
		header[name] = i
	}
	hours := map[string]string{"t-0": "7.97777", "t-1": "1.33333", "g-0": "4.00000", "o-0": "7.97777"}
	for i, row := range rows[1:] {
		name := row[header["lease"]]
		if row[header["gpu_hours"]] != hours[name] || list.Items[i].Name != name || !strings.HasSuffix(wide[i+1], name) {
			t.Errorf("row %v, as data %s, in words %q", row, list.Items[i].Name, wide[i+1])
		}
		if open := row[header["end"]] == ""; open != (row[header["closure_reason"]] == "") {
			t.Errorf("%s ended at %q because of %q", name, row[header["end"]], row[header["closure_reason"]])
		}
		if !strings.Contains(wide[i+1], " "+hours[name][:4]) {
			t.Errorf("%q does not say %s GPU-hours", wide[i+1], hours[name])
		}
	}
}

func TestNoLeases(t *testing.T) {
	server := clitest.NewServer(t)
	for args, want := range map[string]string{
		"":        "No GPU leases found in namespace rai.\n",
		"trainer": "No GPU leases of Run trainer found in namespace rai.\n",
		"-A":      "No GPU leases found.\n",
	} {
		if diff := cmp.Diff(clitest.Said{Err: want}, clitest.Do(t, server, Command, strings.Fields(args)...)); diff != "" {
			t.Errorf("leases %s (-want +got):\n%s", args, diff)
		}
	}
	if said := clitest.Do(t, server, Command, "-o", "csv"); strings.Count(said.Out, "\n") != 1 || said.Err != "" {
		t.Errorf("a spreadsheet of nothing has its header: %+v", said)
	}
	server.Before = func(string) error { return clitest.Forbidden("list", "leases") }
	said := clitest.Do(t, server, Command, "-o", "csv")
	if said.Code != session.ExitError || said.Out != "" || !strings.Contains(said.Err, `cannot list resource "leases"`) {
		t.Errorf("%+v", said)
	}
}

// What cannot be charged is told of by name, with nothing printed that looks like all there is.
func TestALeaseWithARateThatIsNone(t *testing.T) {
	objects := ledgerOf()
	objects[0].(*rqv1.Lease).Spec.Payer.Rate = "2"
	for _, format := range []string{"", "wide", "csv"} {
		said := clitest.Do(t, clitest.NewServer(t, objects...), Command, "-o", format)
		if said.Code == 0 || !strings.Contains(said.Err, "rai/t-0") {
			t.Errorf("-o %s: %+v", format, said)
		}
	}
}
