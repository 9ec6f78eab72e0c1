package maintenance

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// nodeOf is a node of a rack with annotations.
func nodeOf(name, rack, start, end string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + "-uid"),
		Labels: map[string]string{"rack": rack}, Annotations: map[string]string{}}}
	for annotation, value := range map[string]string{rqv1.AnnotationMaintenanceStart: start,
		rqv1.AnnotationMaintenanceEnd: end} {
		if value != "" {
			n.Annotations[annotation] = value
		}
	}
	return n
}

// rack is two nodes of one rack and one of another.
func rack(t *testing.T) *clitest.Server {
	return clitest.NewServer(t, nodeOf("n1", "r7", "", ""), nodeOf("n2", "r7", "2030-01-01T00:00:00Z",
		"2030-01-01T01:00:00Z"), nodeOf("n3", "r8", "", ""))
}

// windows tells what is announced of the three.
func windows(server *clitest.Server) string {
	var out []string
	for _, name := range []string{"n1", "n2", "n3"} {
		of := func(annotation string) string {
			return server.Get(nodeOf(name, "", "", ""), "metadata", "annotations", annotation)
		}
		out = append(out, name+"="+of(rqv1.AnnotationMaintenanceStart)+"/"+of(rqv1.AnnotationMaintenanceEnd))
	}
	return strings.Join(out, " ")
}

// It is 13:00 by the commands' clock.
func TestSet(t *testing.T) {
	before := "n1=/ n2=2030-01-01T00:00:00Z/2030-01-01T01:00:00Z n3=/"
	for args, c := range map[string]struct {
		code int
		want string // what is announced then; as before if empty
		told string
	}{
		"n1 --start 2030-01-02T15:00:00Z --end 2030-01-02T16:00:00Z": {
			want: "n1=2030-01-02T15:00:00Z/2030-01-02T16:00:00Z n2=2030-01-01T00:00:00Z/2030-01-01T01:00:00Z n3=/",
			told: "node n1: maintenance from 15:00 to 16:00"},
		"-l rack=r7 --start 1h --for 2h": {
			want: "n1=2030-01-02T14:00:00Z/2030-01-02T16:00:00Z n2=2030-01-02T14:00:00Z/2030-01-02T16:00:00Z n3=/",
			told: "node n2: maintenance from"},
		"n2 --start 0s": {want: "n1=/ n2=2030-01-02T13:00:00Z/ n3=/", told: "from 13:00 on"},
		"n1 n3 --start 1h --end 3h": {
			want: "n1=2030-01-02T14:00:00Z/2030-01-02T16:00:00Z n2=2030-01-01T00:00:00Z/2030-01-01T01:00:00Z " +
				"n3=2030-01-02T14:00:00Z/2030-01-02T16:00:00Z", told: "node n3"},
		"n1":                       {code: session.ExitUsage, told: "--start"},
		"--start 1h":               {code: session.ExitUsage, told: "or choose them with --selector"},
		"n1 -l rack=r7 --start 1h": {code: session.ExitUsage, told: "or choose them with --selector"},
		"-l rack~r7 --start 1h":    {code: session.ExitUsage, told: "--selector"},
		"-l rack=r9 --start 1h":    {code: session.ExitError, told: "no node matches"},
		"n1 gone --start 1h":       {code: session.ExitError, told: "there is no node gone"},
		"n1 --start soon":          {code: session.ExitUsage, told: `--start is "soon": write a time as`},
		"n1 --start 1h --end 1h":   {code: session.ExitUsage, told: "not after --start"},
		"n1 --start 1h --for -1h":  {code: session.ExitUsage, told: "--for is -1h"},
		"n1 --start -3h --for 1h":  {code: session.ExitUsage, told: "over already"},
		"n1 --start 1h --for 1h --end 2030-01-03T00:00:00Z": {code: session.ExitUsage, told: "not both"},
	} {
		server := rack(t)
		said := clitest.Do(t, server, Command, append([]string{"set"}, strings.Fields(args)...)...)
		want := c.want
		if want == "" {
			want = before
		}
		if diff := cmp.Diff(want, windows(server)); diff != "" || said.Code != c.code ||
			!strings.Contains(said.Out+said.Err, c.told) {
			t.Errorf("set %s: code %d, %s%s (-want +got):\n%s", args, said.Code, said.Out, said.Err, diff)
		}
	}
}

// What an announcement takes out of use is printed: for whom, from when, and who is there now.
func TestSetSaysWhatItTakes(t *testing.T) {
	node := nodeOf("n1", "r7", "", "")
	node.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	train, brief := clitest.RunOf("train", 8, 0, rqv1.RunStatus{}), clitest.RunOf("brief", 8, 0, rqv1.RunStatus{})
	long, short := clitest.LeaseOf(&train, "train-0", 0, "n1"), clitest.LeaseOf(&brief, "brief-0", 0, "n1")
	short.Spec.Until = clitest.Ptr(metav1.NewMicroTime(clitest.Noon.Add(3 * time.Hour)))
	elsewhere := clitest.LeaseOf(&train, "train-1", 0, "n2")
	server := clitest.NewServer(t, node, &long, &short, &elsewhere, clitest.Published(t, "noticePeriod: 1m"))
	said := clitest.Do(t, server, Command, "set", "n1", "--start", "2030-01-02T15:00:00Z", "--for", "1h")
	want := `node n1: maintenance from 15:00 to 16:00
8 GPUs are out of use for Runs that may still run at 15:00:
  from now on if they declare neither a checkpoint nor spares;
  from 14:56 or sooner if they do: they start there if they would wait else.
Who is there leaves by 14:58 if there is room elsewhere: Runs rai/train (8 GPUs).
Who ends before it starts stays: Runs rai/brief (8 GPUs).
`
	if diff := cmp.Diff(want, said.Out); diff != "" || said.Code != 0 {
		t.Errorf("%+v (-want +got):\n%s", said, diff)
	}
	said = clitest.Do(t, clitest.NewServer(t, node, clitest.Published(t, "")), Command, "set", "n1", "--start", "0s")
	want = "8 GPUs are out of use from now on, for all Runs.\nNo Run is there now.\n"
	if !strings.Contains(said.Out, want) {
		t.Errorf("%+v, want %s", said, want)
	}
}

func TestCancel(t *testing.T) {
	server := rack(t)
	said := clitest.Do(t, server, Command, "cancel", "-l", "rack=r7")
	if diff := cmp.Diff("n1=/ n2=/ n3=/", windows(server)); diff != "" || said.Code != 0 ||
		said.Out != "node n1: no maintenance was announced\nnode n2: maintenance canceled\n" {
		t.Errorf("%+v (-want +got):\n%s", said, diff)
	}
}

// A node that is another one by now, under the same name, is left alone.
func TestAnotherNodeOfTheSameName(t *testing.T) {
	server := rack(t)
	server.Before = func(request string) error {
		if strings.HasPrefix(request, "patch") {
			again := nodeOf("n1", "r7", "", "")
			again.UID = "of the next one"
			server.Set(again)
		}
		return nil
	}
	said := clitest.Do(t, server, Command, "set", "n1", "--start", "1h")
	if said.Code != session.ExitError || !strings.HasPrefix(windows(server), "n1=/ ") {
		t.Errorf("%+v: %s", said, windows(server))
	}
}

func TestWithoutTheRightToPatchNodes(t *testing.T) {
	server := rack(t)
	server.Before = func(request string) error {
		if strings.HasPrefix(request, "patch") {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n1",
				clitest.Forbidden("patch", "nodes"))
		}
		return nil
	}
	said := clitest.Do(t, server, Command, "set", "n1", "--start", "1h")
	if said.Code != session.ExitError || !strings.Contains(said.Err, `cannot patch resource "nodes"`) {
		t.Errorf("%+v", said)
	}
}

func TestList(t *testing.T) {
	says := nodeOf("says", "r7", "", "")
	says.Status.Conditions = []corev1.NodeCondition{{Type: "CSPMaintenance", Status: corev1.ConditionTrue,
		Message: "soon"}}
	server := clitest.NewServer(t, says, nodeOf("fine", "r7", "", ""),
		nodeOf("ahead", "r7", "2030-01-02T14:00:00Z", "2030-01-02T15:00:00Z"),
		nodeOf("begun", "r7", "2030-01-02T12:30:00Z", ""),
		nodeOf("over", "r7", "2030-01-01T12:00:00Z", "2030-01-02T13:00:00Z"), nodeOf("ignored", "r7", "tomorrow", ""))
	said := clitest.Do(t, server, Command, "list", "-o", "json")
	var data answer
	if err := json.Unmarshal([]byte(said.Out), &data); err != nil || said.Code != 0 {
		t.Fatalf("%v: %+v", err, said)
	}
	var got []string
	for _, n := range data.Nodes {
		got = append(got, n.Name+" "+n.State)
	}
	want := []string{"ignored Ignored", "says Undated", "over Over", "begun Under way", "ahead Ahead"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if end := data.Nodes[4].End; end == nil || !end.Equal(clitest.Ptr(metav1.NewTime(clitest.Noon.Add(3*time.Hour)))) {
		t.Errorf("%+v", data.Nodes[4])
	}
	table := clitest.Do(t, server, Command, "list").Out
	for _, line := range []string{"14:00 (in 60m)", "CSPMaintenance: soon",
		`"tomorrow", which is not a time`} {
		if !strings.Contains(table, line) {
			t.Errorf("the table lacks %q:\n%s", line, table)
		}
	}
	if said := clitest.Do(t, clitest.NewServer(t, nodeOf("fine", "", "", "")), Command, "list"); said.Code != 0 ||
		said.Out != "" || !strings.Contains(said.Err, "No maintenance is announced.") {
		t.Errorf("%+v", said)
	}
	if said := clitest.Do(t, server, Command, "stop"); said.Code != session.ExitUsage ||
		!strings.Contains(said.Err, "choose from set, list, cancel") {
		t.Errorf("%+v", said)
	}
}
