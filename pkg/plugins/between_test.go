package plugins

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// TestAskingBetweenCycles waits for the end of a cycle, and asks about the places of ranks with their own pods gone.
// What could not be found out is nobody's fault.
func TestAskingBetweenCycles(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := book.New(args)
	nodes := []*corev1.Node{cpuNode("n0"), cpuNode("n1")}
	for _, node := range nodes {
		b.SetNode(node)
	}
	rank := rankPod("rank", "8", "8", true)
	was := rank.DeepCopy()
	was.Spec.NodeName = "n0"
	snapshot := cache.NewSnapshot([]*corev1.Pod{was, other("daemon", "n1", "0", "12")}, nodes)
	refreshed := 0
	w := &between{book: b, clock: clocktesting.NewFakeClock(time.Now()), plugins: judges(t, snapshot),
		fresh: func() error { refreshed++; return nil }}
	ask := func(node string) ([]book.Turning, bool) {
		return w.ask(t.Context(), &book.Check{Seats: true, Places: []book.Place{{Pod: rank, Node: node}},
			Leaving: map[string][]types.UID{"n0": {was.UID}}})
	}
	w.turn.Lock() // a cycle
	answered := make(chan bool)
	go func() {
		turned, sure := ask("n0")
		answered <- sure && len(turned) == 0
	}()
	select {
	case <-answered:
		t.Errorf("it was asked during a cycle")
	case <-time.After(100 * time.Millisecond):
	}
	w.turn.Unlock()
	if !<-answered {
		t.Errorf("the node turns the rank down that it is on")
	}
	turned, sure := ask("n1")
	want := []book.Turning{{Pod: rank.UID, Node: "n1", Why: "Insufficient cpu"}}
	if diff := cmp.Diff(want, turned); diff != "" || !sure {
		t.Errorf("turned down (-want +got): sure %v\n%s", sure, diff)
	}
	if turned, sure := ask("n2"); sure || len(turned) > 0 {
		t.Errorf("of a node that is not there: %v, %v", turned, sure)
	}
	if refreshed != 3 {
		t.Errorf("the snapshot was brought up to date %d times", refreshed)
	}
}
