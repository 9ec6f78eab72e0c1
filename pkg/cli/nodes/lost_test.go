package nodes

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// nodeOf is a node of eight GPUs.
func nodeOf(name string, ready corev1.ConditionStatus, annotations ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + "-uid"),
		Annotations: map[string]string{}}}
	for _, a := range annotations {
		n.Annotations[a] = "2030-01-02T12:00:00Z NodeNotReady not Ready for 30s"
		n.Spec.Unschedulable = n.Spec.Unschedulable || a == rqv1.AnnotationLost
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	n.Status.Capacity = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	return n
}

func TestNodesInEveryFormat(t *testing.T) {
	server := clitest.NewServer(t, nodeOf("fine", corev1.ConditionTrue), nodeOf("held", corev1.ConditionFalse,
		rqv1.AnnotationHeldBack), nodeOf("lost", corev1.ConditionUnknown, rqv1.AnnotationLost))
	for args, want := range map[string]string{
		"-o name": "node/lost node/held node/fine",
		"-o jsonpath={.nodes[?(@.state==\"Lost\")].name}":           "lost",
		"-o go-template={{range.nodes}}{{.name}}={{.gpus}}_{{end}}": "lost=8_held=8_fine=8_",
	} {
		said := clitest.Do(t, server, Command, strings.Fields(args)...)
		if diff := cmp.Diff(want, strings.Join(strings.Fields(said.Out), " ")); said.Code != 0 || diff != "" {
			t.Errorf("nodes %s: code %d, %s (-want +got):\n%s", args, said.Code, said.Err, diff)
		}
	}
	var data nodesAnswer
	said := clitest.Do(t, server, Command, "-o", "json")
	if err := json.Unmarshal([]byte(said.Out), &data); err != nil || len(data.Nodes) != 3 ||
		data.Nodes[0].Since == nil || !data.Nodes[0].Since.Equal(clitest.Ptr(clitest.After(0))) {
		t.Errorf("%v: %+v", err, data)
	}
	table := clitest.Do(t, server, Command, "-o", "wide").Out
	for _, line := range []string{"lost", "60m", "NodeNotReady not Ready for 30s", "CORDONED", "Unknown"} {
		if !strings.Contains(table, line) {
			t.Errorf("the table lacks %q:\n%s", line, table)
		}
	}
}

func TestNoNodes(t *testing.T) {
	server := clitest.NewServer(t, nodeOf("fine", corev1.ConditionTrue), clitest.Published(t, "gpuResource: amd.com/gpu"))
	said := clitest.Do(t, server, Command)
	if said.Code != 0 || said.Out != "" || !strings.Contains(said.Err, "No nodes with amd.com/gpu found") {
		t.Errorf("%+v", said)
	}
	said = clitest.Do(t, server, Command, "-o", "json")
	if diff := cmp.Diff(`{"nodes":[]}`, strings.Join(strings.Fields(said.Out), "")); diff != "" {
		t.Error(diff)
	}
	said = clitest.Do(t, server, Command, "list")
	if said.Code != session.ExitUsage || !strings.Contains(said.Err, `"list" is not a command`) {
		t.Errorf("%+v", said)
	}
}

// TestSayThatNodesAreLost tells which nodes may be said to be lost. A refusal leaves all of them as they were.
func TestSayThatNodesAreLost(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		code int
		lost string // those that are recorded afterwards
		told []string
	}{
		"silent ones": {args: "silent unready --because=rack", lost: "silent unready",
			told: []string{"node silent is lost", "node unready is lost", "kubectl uncordon NODE"}},
		"one that is held back although it is Ready": {args: "held", lost: "held", told: []string{"node held is lost"}},
		"one that is Ready": {args: "silent fine", code: session.ExitError,
			told: []string{"node fine is Ready", "--force"}},
		"one that is Ready and known to be gone": {args: "fine --force", lost: "fine", told: []string{"node fine is lost"}},
		"one that is not there": {args: "silent gone", code: session.ExitError,
			told: []string{"there is no node gone", "kubectl runs nodes"}},
		"one that is lost already": {args: "before", told: []string{"node before is already recorded as lost"}},
		"one that a condition tells of, which would come back by itself": {args: "sick", lost: "sick",
			told: []string{"node sick is lost"}},
		"none": {code: session.ExitUsage, told: []string{"name nodes"}},
	} {
		sick := nodeOf("sick", corev1.ConditionTrue, rqv1.AnnotationLost)
		sick.Annotations[rqv1.AnnotationLost] = "2030-01-02T12:00:00Z NodeCondition condition XID is True: 79"
		objects := []client.Object{nodeOf("fine", corev1.ConditionTrue), nodeOf("silent", corev1.ConditionUnknown),
			nodeOf("unready", corev1.ConditionFalse), nodeOf("held", corev1.ConditionTrue, rqv1.AnnotationHeldBack),
			nodeOf("before", corev1.ConditionUnknown, rqv1.AnnotationLost), sick}
		server := clitest.NewServer(t, objects...)
		said := clitest.Do(t, server, Command, append([]string{"lost"}, strings.Fields(c.args)...)...)
		if said.Code != c.code {
			t.Errorf("%s: code %d, want %d: %s", name, said.Code, c.code, said.Err)
		}
		for _, want := range c.told {
			if !strings.Contains(said.Out+said.Err, want) {
				t.Errorf("%s: %q lacks %q", name, said.Out+said.Err, want)
			}
		}
		var lost []string
		for _, o := range []string{"fine", "silent", "unready", "held", "sick"} {
			node := nodeOf(o, "")
			record := server.Get(node, "metadata", "annotations", rqv1.AnnotationLost)
			if record == sick.Annotations[rqv1.AnnotationLost] {
				continue
			}
			cordoned := server.Get(node, "spec", "unschedulable") == "true"
			if cordoned != (record != "") {
				t.Errorf("%s: node %s is cordoned (%v) and its record is %q", name, o, cordoned, record)
			}
			if record == "" {
				continue
			}
			lost = append(lost, o)
			at, reason, why, _ := nodeloss.Told(record)
			if !at.Equal(clitest.Noon.Add(3600e9)) || reason != nodeloss.Administrator || !strings.HasPrefix(why,
				"said by ada: ") {
				t.Errorf("%s: node %s is recorded as %q", name, o, record)
			}
		}
		if diff := cmp.Diff(c.lost, strings.Join(lost, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// All nodes are cordoned before the first is lost, so that what moves away from one does not come to another; and a
// node that is another one by then, under the same name, is not recorded.
func TestWhatHappensMeanwhile(t *testing.T) {
	server := clitest.NewServer(t, nodeOf("n1", corev1.ConditionUnknown), nodeOf("n2", corev1.ConditionUnknown))
	patches := 0
	server.Before = func(request string) error {
		if strings.HasPrefix(request, "patch") {
			if patches++; patches == 3 {
				for _, n := range []string{"n1", "n2"} {
					if server.Get(nodeOf(n, ""), "spec", "unschedulable") != "true" {
						t.Errorf("node %s is not cordoned before the first is lost", n)
					}
				}
				again := nodeOf("n1", corev1.ConditionTrue)
				again.UID = "of the next one"
				server.Set(again)
			}
		}
		return nil
	}
	said := clitest.Do(t, server, Command, "lost", "n1", "n2")
	if said.Code != session.ExitError || strings.Contains(said.Out, "n1 is lost") {
		t.Errorf("%+v", said)
	}
	if record := server.Get(nodeOf("n1", ""), "metadata", "annotations", rqv1.AnnotationLost); record != "" {
		t.Errorf("the node that came after is recorded as %q", record)
	}
}

func TestWithoutTheRightToPatchNodes(t *testing.T) {
	server := clitest.NewServer(t, nodeOf("n1", corev1.ConditionUnknown))
	server.Before = func(request string) error {
		if strings.HasPrefix(request, "patch") {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n1",
				clitest.Forbidden("patch", "nodes"))
		}
		return nil
	}
	said := clitest.Do(t, server, Command, "lost", "n1")
	if said.Code != session.ExitError || !strings.Contains(said.Err, `cannot patch resource "nodes"`) ||
		!strings.Contains(said.Err, "ask an administrator") {
		t.Errorf("%+v", said)
	}
}
