package controllers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

// TestTheAuditLooksTwice has two Leases hold the same GPUs: that is a violation once two looks in a row have seen it,
// and for as long as they do. What a process sees that does not lead, or is not answered, is none.
func TestTheAuditLooksTwice(t *testing.T) {
	metrics.Register()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, leads := newServer(t), true
	clock := clocktesting.NewFakeClock(noon)
	o := &Options{Args: args, Clock: clock, Holds: func() bool { return leads },
		Shared: informers.NewSharedInformerFactory(s.kube, 0)}
	w := newWatches(nil, s.kube)
	c := &contact{period: auditPeriod}
	a := newAuditor(o, w, c)
	add := func(in cache.SharedInformer, object any) {
		if err := in.GetStore().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	add(a.fleet, nodeOf8("n0"))
	add(w.budgets, &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: rqv1.BudgetSpec{Owner: "o",
		Envelopes: []rqv1.Envelope{{Name: "e", Flavor: "H100", Concurrency: 100}}}})
	var twice []*rqv1.Lease
	for i, name := range []string{"x", "y"} {
		pod := rankOf(i, corev1.PodRunning)
		pod.Spec.NodeName = "n0"
		add(w.pods, pod)
		lease := closed("b", name)
		lease.Status, lease.UID = rqv1.LeaseStatus{}, pod.UID
		lease.Labels = map[string]string{rqv1.LabelPodUID: string(pod.UID), rqv1.LabelRun: "train"}
		lease.Spec.Slice.Nodes = []rqv1.NodeGPUs{{Name: "n0", GPUs: 8}}
		lease.Spec.RunRef = rqv1.LeaseRunRef{Namespace: "ns", Name: "train", UID: "run"}
		twice = append(twice, lease)
	}
	stands := func() bool {
		n, err := testutil.GetGaugeMetricValue(metrics.InvariantViolations.WithLabelValues("I1"))
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	}
	found := func() float64 {
		n, err := testutil.GetCounterMetricValue(metrics.InvariantViolationsFound.WithLabelValues("I1"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	add(w.leases, twice[0])
	passes := func(d time.Duration) {
		for range d / auditPeriod {
			clock.Step(auditPeriod)
			c.hear(true, clock.Now())
		}
		clock.Step(d % auditPeriod)
	}
	before := found()
	for i, look := range []struct {
		what   string
		does   func()
		silent bool
		stands bool
		found  float64 // in all
	}{
		{what: "they hold the same when the process begins", does: func() { add(w.leases, twice[1]) }},
		{what: "it has had time to mend that"},
		{what: "still", stands: true, found: 1},
		{what: "and still", stands: true, found: 1},
		{what: "the API server does not answer", silent: true, stands: true, found: 1},
		{what: "it does again, and its watches may not", stands: true, found: 1},
		{what: "nor now", does: func() { passes(auditRest - 1) }, stands: true, found: 1},
		{what: "they do by now", does: func() { clock.Step(1) }, stands: true, found: 1},
		{what: "for the second time", stands: true, found: 1}, // which is told already
		{what: "this process leads no more", does: func() { leads = false }, found: 1},
		{what: "it does again", does: func() { leads = true }, found: 1},
		{what: "for a while", found: 1},
		{what: "one of them is closed", does: func() {
			if err := w.leases.GetStore().Delete(twice[1]); err != nil {
				t.Fatal(err)
			}
		}, found: 1},
	} {
		if look.does != nil {
			look.does()
		}
		c.hear(!look.silent, clock.Now())
		a.look(t.Context())
		if stands() != look.stands || found()-before != look.found {
			t.Errorf("look %d, %s: a violation stands %v, found %v", i, look.what, stands(), found()-before)
		}
	}
}
