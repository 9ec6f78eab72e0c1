package topology

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// besideFleet has two nodes with some CPU, one of which is in use.
func besideFleet(t *testing.T) *Fleet {
	t.Helper()
	f := NewFleet([]string{"domain"}, "domain")
	for _, name := range []string{"n0", "n1"} {
		f.SetNode(Node{Name: name, Labels: map[string]string{"domain": "d"}, Flavor: "H100", GPUs: 8,
			Beside: NewAmounts(map[string]int64{"cpu": 16000, "pods": 110})})
	}
	f.Hold("n0", 4, NewAmounts(map[string]int64{"cpu": 6000, "pods": 1}))
	return f
}

// room is how many pods of one GPU and two CPUs each node takes.
func room(f *Fleet) map[string]int {
	asks := NewAmounts(map[string]int64{"cpu": 2000, "pods": 1})
	return map[string]int{"n0": f.RoomBeside("n0", asks, 100), "n1": f.RoomBeside("n1", asks, 100)}
}

// What nobody holds any more is forgotten, whoever asked for it, and what there is stays what it was.
func TestResourcesThatNobodyHoldsAreForgotten(t *testing.T) {
	f := besideFleet(t)
	want := room(f)
	for i := range 1000 {
		of := map[string]int64{"pods": 1}
		for k := range 20 {
			of[fmt.Sprintf("example.com/%d-%d", i, k)] = 1
		}
		odd := NewAmounts(of)
		f.Pack(Request{Flavor: "H100", GPUsPerPod: 1, Beside: odd, Groups: []Group{{Pods: 1}}})
		f.Burden("n0", odd, +1)
		f.Burden("n0", odd, -1)
	}
	if n := len(f.resources); n > 200 {
		t.Errorf("the fleet numbers %d resources", n)
	}
	if n := len(f.nodes["n0"].burden); n > 200 {
		t.Errorf("a node has %d numbers", n)
	}
	if diff := cmp.Diff(want, room(f)); diff != "" {
		t.Errorf("room (-want +got):\n%s", diff)
	}
	f.Hold("n0", -4, NewAmounts(map[string]int64{"cpu": 6000, "pods": 1}))
	if diff := cmp.Diff(map[string]int{"n0": 8, "n1": 8}, room(f)); diff != "" {
		t.Errorf("room of empty nodes (-want +got):\n%s", diff)
	}
}

// No GPUs are nothing, whichever way they go.
func TestNoGPUsHoldNothing(t *testing.T) {
	f := besideFleet(t)
	want := room(f)
	for range 3 {
		f.Hold("n1", 0, NewAmounts(map[string]int64{"cpu": 6000, "pods": 1}))
	}
	if diff := cmp.Diff(want, room(f)); diff != "" {
		t.Errorf("room (-want +got):\n%s", diff)
	}
}
