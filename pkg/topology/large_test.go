package topology

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPlanningIsSmall holds DESIGN's limit on memory: a plan of 1,000 pods on 5,000 nodes allocates at most 1 MB. Time
// is the benchmarks' business.
func TestPlanningIsSmall(t *testing.T) {
	for name, r := range map[string]Request{
		"whole nodes":    {GPUsPerPod: 8, Groups: groups(1, 1000)},
		"groups":         {GPUsPerPod: 4, Groups: groups(250, 4), Confined: true},
		"several payers": {GPUsPerPod: 4, Groups: groups(250, 4), Confined: true, Purse: onePerRegion{600}},
		"does not fit":   {GPUsPerPod: 8, Groups: groups(1, 4900)},
	} {
		t.Run(name, func(t *testing.T) {
			f := bigFleet(40, name != "whole nodes")
			r.Flavor = "H100"
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			placement, shortfall := f.Pack(r)
			runtime.ReadMemStats(&after)
			if (shortfall == nil) == (name == "does not fit") {
				t.Fatalf("%d slots, %v", len(placement.Slots), shortfall)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
				t.Errorf("%d bytes allocated", got)
			}
		})
	}
}

// largeWorld is up to 40 domains of 10 nodes, and up to 250 groups of equal size.
func largeWorld(t *rapid.T) *world {
	w := &world{levels: []string{"region", "cluster", "fabric"}, fabric: "fabric", held: map[string]int{}}
	for d := range rapid.IntRange(20, 40).Draw(t, "domains") {
		fullness := rapid.IntRange(0, 8).Draw(t, "fullness")
		for n := range 10 {
			name := fmt.Sprintf("n%02d%d", d, n)
			w.nodes = append(w.nodes, Node{Name: name, Flavor: "H100", GPUs: 8, Labels: map[string]string{
				"region": fmt.Sprint("r", d/10), "cluster": fmt.Sprint("c", d/5), "fabric": fmt.Sprint("f", d),
			}})
			w.held[name] = (d*7 + n*5) % (fullness + 1)
		}
	}
	w.request = Request{
		Flavor:     "H100",
		GPUsPerPod: rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "gpusPerPod"),
		Groups:     groups(rapid.IntRange(1, 250).Draw(t, "groups"), rapid.IntRange(1, 8).Draw(t, "pods")),
		Confined:   rapid.Bool().Draw(t, "confined"),
	}
	return w
}

// TestLargePacksAreSound checks the hard rules where brute force cannot follow, and that groups of one size touch as
// few units of the widest level as any placement could: the roomiest units first give that number.
func TestLargePacksAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := largeWorld(t)
		placement, shortfall := w.fleet(w.inOrder()).Pack(w.request)
		room, total := w.roomByRegion()
		if fits := total >= len(w.request.Groups); fits != (shortfall == nil) {
			t.Fatalf("room for %d of %d groups: %v", total, len(w.request.Groups), shortfall)
		}
		if shortfall != nil {
			checkShortfall(t, w, shortfall)
			return
		}
		w.checkPlacement(t, placement)
		fewest, left := 0, len(w.request.Groups)
		for ; left > 0; fewest++ {
			left -= room[fewest]
		}
		if !w.request.Confined {
			return
		}
		if got := w.cost(placement)[0]; got != fewest {
			t.Fatalf("%d regions touched where %d would do", got, fewest)
		}
	})
}

// roomByRegion is how many groups each region could take, roomiest first, and all together. Pods that are not confined
// count by the fleet as a whole.
func (w *world) roomByRegion() (rooms []int, total int) {
	byRegion, byDomain := map[string]int{}, map[string]int{}
	pods := 0
	for _, n := range w.nodes {
		fits := (n.GPUs - w.held[n.Name]) / w.request.GPUsPerPod
		byDomain[n.Labels["region"]+"/"+n.Labels["fabric"]] += fits
		pods += fits
	}
	each := w.request.Groups[0].Pods
	if !w.request.Confined {
		return []int{pods / each}, pods / each
	}
	for key, fits := range byDomain {
		byRegion[key[:2]] += fits / each
		total += fits / each
	}
	for _, n := range byRegion {
		rooms = append(rooms, n)
	}
	slices.Sort(rooms)
	slices.Reverse(rooms)
	return rooms, total
}
