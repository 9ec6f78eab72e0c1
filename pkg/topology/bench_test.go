package topology

import (
	"fmt"
	"strconv"
	"testing"
)

// bigFleet is 5,000 nodes of 8 GPUs in domains of equal size, five domains to a cluster and two clusters to a region.
// When used, nodes hold 0 to 8 GPUs in a fixed irregular pattern.
func bigFleet(domains int, used bool) *Fleet {
	f := NewFleet([]string{"region", "cluster", "fabric"}, "fabric")
	f.SetSelectorKeys([]string{"region"})
	for i := range 5000 {
		d := i * domains / 5000
		name := fmt.Sprintf("node-%04d", i)
		f.SetNode(Node{Name: name, Flavor: "H100", GPUs: 8, Beside: besideGPUs(96000, 1<<39, 110), Labels: map[string]string{
			"region":  "r" + strconv.Itoa(d/10),
			"cluster": "c" + strconv.Itoa(d/5%2),
			"fabric":  fmt.Sprintf("f%02d", d),
		}})
		if used {
			f.Take(name, i*i%97%(3+d*7%11)%9)
		}
	}
	return f
}

// besideGPUs are thousandths of CPUs, bytes of memory and places for pods.
func besideGPUs(cpu, memory, pods int64) *Amounts {
	return NewAmounts(map[string]int64{"cpu": cpu, "memory": memory, "pods": pods})
}

func groups(n, pods int) []Group {
	out := make([]Group, n)
	for i := range out {
		out[i] = Group{Index: i, Pods: pods}
	}
	return out
}

func withSpares(groups []Group, spares int) []Group {
	for i := range groups {
		groups[i].Spares = spares
	}
	return groups
}

// onePerRegion pays for so many pods in each region.
type onePerRegion struct{ pods int }

func (onePerRegion) Class(labels map[string]string) int {
	n, _ := strconv.Atoi(labels["region"][1:])
	return n
}

func (p onePerRegion) Covers(demand []int) bool {
	for _, n := range demand {
		if n > p.pods {
			return false
		}
	}
	return true
}

func BenchmarkPack(b *testing.B) {
	empty, used := bigFleet(40, false), bigFleet(50, true)
	for _, c := range []struct {
		name  string
		fleet *Fleet
		Request
		fits bool
	}{
		{"pods=1000x8/empty", empty, Request{GPUsPerPod: 8, Groups: groups(1, 1000)}, true},
		{"pods=1000x8/used", used, Request{GPUsPerPod: 8, Groups: groups(1, 600)}, true},
		{"pods=1000x1/used", used, Request{GPUsPerPod: 1, Groups: groups(1, 1000)}, true},
		{"pods=1000x8/empty/beside", empty, Request{GPUsPerPod: 8, Groups: groups(1, 1000),
			Beside: besideGPUs(90000, 1<<30, 1)}, true},
		{"pods=1000x1/used/beside", used, Request{GPUsPerPod: 1, Groups: groups(1, 1000),
			Beside: besideGPUs(11000, 1<<30, 1)}, true},
		{"groups=250x4x2/used/beside", used, Request{GPUsPerPod: 2, Groups: groups(250, 4), Confined: true,
			Beside: besideGPUs(22000, 1<<30, 1)}, true},
		{"groups=200x(4+1)x8/empty/beside", empty, Request{GPUsPerPod: 8, Groups: withSpares(groups(200, 4), 1),
			Confined: true, Beside: besideGPUs(90000, 1<<30, 1)}, true},
		{"groups=250x4x8/empty", empty, Request{GPUsPerPod: 8, Groups: groups(250, 4), Confined: true}, true},
		{"groups=250x4x2/used", used, Request{GPUsPerPod: 2, Groups: groups(250, 4), Confined: true}, true},
		{"groups=250x4x2/purse", used, Request{GPUsPerPod: 2, Groups: groups(250, 4), Confined: true,
			Purse: onePerRegion{500}}, true},
		{"groups=200x(4+1)x8/empty", empty, Request{GPUsPerPod: 8, Groups: withSpares(groups(200, 4), 1), Confined: true},
			true},
		{"groups=100x(8+2)x1/used", used, Request{GPUsPerPod: 1, Groups: withSpares(groups(100, 8), 2), Confined: true},
			true},
		{"pods=(900+100)x2/used", used, Request{GPUsPerPod: 2, Groups: withSpares(groups(1, 900), 100)}, true},
		{"unfit=3000x8/used", used, Request{GPUsPerPod: 8, Groups: groups(1, 3000)}, false},
		{"unfit=1000x8/empty/purse", empty, Request{GPUsPerPod: 8, Groups: groups(250, 4), Confined: true,
			Purse: onePerRegion{200}}, false},
		{"unfit=1000x8/purse/one", empty, Request{GPUsPerPod: 8, Groups: groups(1, 1000), Purse: onePerRegion{0}}, false},
	} {
		c.Flavor = "H100"
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, shortfall := c.fleet.Pack(c.Request); (shortfall == nil) != c.fits {
					b.Fatal(shortfall)
				}
			}
		})
	}
}

// BenchmarkPackGangs places 750 gangs of 4 pods one after another, each on what the ones before left.
func BenchmarkPackGangs(b *testing.B) {
	f := bigFleet(50, false)
	r := Request{Flavor: "H100", GPUsPerPod: 8, Groups: groups(1, 4), Confined: true}
	b.ReportAllocs()
	for b.Loop() {
		var placed []Slot
		for range 750 {
			placement, shortfall := f.Pack(r)
			if shortfall != nil {
				b.Fatal(shortfall)
			}
			for _, s := range placement.Slots {
				f.Take(s.Node, 8)
			}
			placed = append(placed, placement.Slots...)
		}
		for _, s := range placed {
			f.Give(s.Node, 8)
		}
	}
}

// BenchmarkTakeGive is what one pod costs the fleet.
func BenchmarkTakeGive(b *testing.B) {
	f := bigFleet(50, true)
	b.ReportAllocs()
	for b.Loop() {
		f.Take("node-2500", 1)
		f.Give("node-2500", 1)
	}
}
