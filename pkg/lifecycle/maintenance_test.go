package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/outage"
)

// TestMaintenanceAhead has a Run tell when its nodes are going to be out of service, once, and that they are not.
func TestMaintenanceAhead(t *testing.T) {
	o := scene(func(o *Observed) {
		started(o)
		o.pods("n0", "n1", "n2", "n3")
	})
	now := o.Now
	window := outage.Window{Start: now.Add(time.Hour).UTC(), End: now.Add(2 * time.Hour).UTC()}
	until := window.String()
	steps := []struct {
		does string
		do   func()
		want string
	}{
		{"nothing is announced", func() {}, ""},
		{"for two nodes", func() {
			o.Nodes["n2"], o.Nodes["n0"] = book.NodeState{Stands: true, Outage: window},
				book.NodeState{Stands: true, Outage: window}
		}, "True maintenance is planned for nodes of the Run; n0 n2: " + until},
		{"one says so without a date", func() {
			o.Nodes["n2"] = book.NodeState{Stands: true, Sign: "CSPMaintenance"}
		}, "True maintenance is planned for nodes of the Run; n0: " + until + "; n2: condition CSPMaintenance"},
		{"as it starts", func() { o.Now = window.Start }, "True maintenance is planned for nodes of the Run; n0: " +
			until + "; n2: condition CSPMaintenance"},
		{"one is over", func() { o.Now = window.End },
			"True maintenance is planned for nodes of the Run; n2: condition CSPMaintenance"},
		{"both are", func() { o.Nodes["n2"] = book.NodeState{Stands: true} },
			"False no maintenance is planned for nodes of the Run"},
	}
	for _, step := range steps {
		step.do()
		if d := Decide(o); d.Status != nil {
			o.Run.Status = *d.Status
		}
		got := ""
		if c := meta.FindStatusCondition(o.Run.Status.Conditions, rqv1.ConditionMaintenanceAhead); c != nil {
			got = string(c.Status) + " " + c.Message
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.does, diff)
		}
		o.Now = o.Now.Add(time.Second)
		if d := Decide(o); d.Status != nil {
			t.Errorf("%s: it is told again: %+v", step.does, d.Status.Conditions)
		}
	}
}

// TestARunThatEndsBeforeMaintenance is not told of it.
func TestARunThatEndsBeforeMaintenance(t *testing.T) {
	o := scene(func(o *Observed) {
		started(o)
		o.pods("n0", "n1", "n2", "n3")
		o.Run.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: time.Hour}}
	})
	o.Nodes["n0"] = book.NodeState{Stands: true, Outage: outage.Window{Start: o.Now.Add(2 * time.Hour)}}
	if d := Decide(o); d.Status != nil && meta.FindStatusCondition(d.Status.Conditions,
		rqv1.ConditionMaintenanceAhead) != nil {
		t.Errorf("it is told: %+v", d.Status.Conditions)
	}
}
