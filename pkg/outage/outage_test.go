package outage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func annotated(start, end string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
	if start != "" {
		n.Annotations[rqv1.AnnotationMaintenanceStart] = start
	}
	if end != "" {
		n.Annotations[rqv1.AnnotationMaintenanceEnd] = end
	}
	return n
}

func TestWindowOf(t *testing.T) {
	for name, c := range map[string]struct {
		start, end string
		want       Window
		problem    string // some of what is said
	}{
		"nothing":       {},
		"both":          {"2030-01-02T12:00:00Z", "2030-01-02T14:00:00Z", Window{noon, noon.Add(2 * time.Hour)}, ""},
		"without end":   {"2030-01-02T12:00:00Z", "", Window{Start: noon}, ""},
		"another zone":  {"2030-01-02T13:00:00+01:00", "", Window{Start: noon}, ""},
		"without start": {"", "2030-01-02T14:00:00Z", Window{}, "set rq.davidlangworthy.io/maintenance-start too"},
		"no time": {"tomorrow", "", Window{},
			`maintenance-start is "tomorrow", which is not a time: write it as 2030-`},
		"no end": {"2030-01-02T12:00:00Z", "2h", Window{}, `maintenance-end is "2h", which is not a time`},
		"ends first": {"2030-01-02T12:00:00Z", "2030-01-02T11:00:00Z", Window{},
			"which is not after 2030-01-02T12:00:00Z"},
		"no while":     {"2030-01-02T12:00:00Z", "2030-01-02T12:00:00Z", Window{}, "set a later end"},
		"a long story": {strings.Repeat("x", 1e5), "", Window{}, "which is not a time"},
	} {
		got, err := WindowOf(annotated(c.start, c.end))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (err != nil) != (c.problem != "") || err != nil && !strings.Contains(err.Error(), c.problem) ||
			len(fmt.Sprint(err)) > 300 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A node is shut to what would not be gone when its window starts, until the window is over.
func TestShuts(t *testing.T) {
	w := Window{noon, noon.Add(time.Hour)}
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	for name, c := range map[string]struct {
		window      Window
		from, until time.Time
		want        bool
	}{
		"none":                              {Window{}, at(0), time.Time{}, false},
		"ends before":                       {w, at(-60), at(-1), false},
		"ends as it starts":                 {w, at(-60), at(0), false},
		"ends a moment later":               {w, at(-60), at(0).Add(1), true},
		"nobody knows when it ends":         {w, at(-6000), time.Time{}, true},
		"within":                            {w, at(10), at(20), true},
		"as it is over":                     {w, at(60), time.Time{}, false},
		"a moment before":                   {w, at(60).Add(-1), time.Time{}, true},
		"an outage without an end":          {Window{Start: noon}, at(60000), at(60001), true},
		"which has not started by the time": {Window{Start: noon}, at(-2), at(-1), false},
	} {
		if got := c.window.Shuts(c.from, c.until); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Who may be there at one instant and for a while may be there for less, and whoever comes later to go at the same
// time.
func TestLessIsShutOutLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minute := func(of string) time.Time {
			return noon.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, of)) * time.Minute)
		}
		w := Window{minute("start"), minute("end")}
		from, until := minute("from"), minute("until")
		if w.Shuts(from, until) {
			return
		}
		if sooner := minute("sooner"); !sooner.After(until) && w.Shuts(from, sooner) {
			t.Fatalf("%v shuts %s to %s, not to %s", w, from, sooner, until)
		}
		if later := minute("later"); !later.Before(from) && w.Shuts(later, until) {
			t.Fatalf("%v shuts from %s, not from %s", w, later, from)
		}
	})
}

func TestSigns(t *testing.T) {
	for kind, want := range map[corev1.NodeConditionType]Sign{
		"DrainInProgress":                {Condition: "DrainInProgress", Message: "so it is", Drains: true},
		"MaintenancePlanned":             {Condition: "MaintenancePlanned", Message: "so it is"},
		"MaintenanceInProgress":          {Condition: "MaintenanceInProgress", Message: "so it is"},
		"Drained":                        {Condition: "Drained", Message: "so it is"},
		"GracefulNodeShutdownInProgress": {Condition: "GracefulNodeShutdownInProgress", Message: "so it is"},
		"CSPMaintenance":                 {Condition: "CSPMaintenance", Message: "so it is"},
		"Ready":                          {},
		"Hot":                            {},
	} {
		for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse,
			corev1.ConditionUnknown} {
			n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: kind, Status: status, Message: "so it is"}}}}
			sign := want
			if status != corev1.ConditionTrue {
				sign = Sign{}
			}
			got, is := SignOf(n)
			if diff := cmp.Diff(sign, got); diff != "" || is != (sign != Sign{}) {
				t.Errorf("%s %s (-want +got):\n%s", kind, status, diff)
			}
			if Drains(n) != sign.Drains {
				t.Errorf("%s %s drains: %v", kind, status, Drains(n))
			}
		}
	}
}
