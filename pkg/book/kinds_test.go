package book

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// asksFor is a pod that asks for some resources, one of each.
func asksFor(amount string, names ...string) *corev1.Pod {
	requests := corev1.ResourceList{}
	for _, name := range names {
		requests[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Resources: corev1.ResourceRequirements{Requests: requests}}}}}
}

// The record of what pods ask for stays the same while somebody has it, however many others there have been, and those
// that nobody has are forgotten.
func TestRecordsStayTheSame(t *testing.T) {
	k := &kinds{gpus: config.Resources{"nvidia.com/gpu"}}
	first := k.besideGPUs(asksFor("1", "cpu"))
	for round := range 3 {
		for i := range 11000 {
			k.besideGPUs(asksFor("1", fmt.Sprintf("example.com/%d-%d", round, i)))
		}
		runtime.GC()
	}
	if n := len(k.shared); n > 25000 {
		t.Errorf("%d records are kept", n)
	}
	if again := k.besideGPUs(asksFor("1", "cpu")); again != first {
		t.Error("there are two records of the same")
	}
}

// However many resources a pod asks for, some are looked at, and what every node has is among them.
func TestAPodThatAsksForEverything(t *testing.T) {
	k := &kinds{gpus: config.Resources{"nvidia.com/gpu"}}
	names := []string{"cpu", "memory"}
	for i := range 5000 {
		names = append(names, fmt.Sprintf("a.example.com/%d", i))
	}
	pod := asksFor("1", names...)
	for i := range int32(5000) {
		pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports, corev1.ContainerPort{HostPort: i + 1})
	}
	got := map[string]int64{}
	for _, x := range k.besideGPUs(pod).All() {
		got[x.Resource] = x.N
	}
	if got["cpu"] != 1000 || got["memory"] != 1 || got["pods"] != 1 || len(got) > 200 {
		t.Errorf("%d resources: %v", len(got), got)
	}
}

// Amounts without reason fill a node, and never make room on it.
func TestAmountsWithoutReason(t *testing.T) {
	k := &kinds{gpus: config.Resources{"nvidia.com/gpu"}}
	for _, amount := range []string{"9223372036854775807", "5E", "9E"} {
		f := topology.NewFleet([]string{"domain"}, "domain")
		f.SetNode(topology.Node{Name: "n0", Labels: map[string]string{"domain": "d"}, Flavor: "H100", GPUs: 8,
			Beside: topology.NewAmounts(map[string]int64{"cpu": 16000, "memory": 1 << 37, "pods": 110})})
		for _, name := range []string{"cpu", "memory"} {
			asks := k.besideGPUs(asksFor(amount, name))
			if f.Lacks("n0", asks, 2) != name || f.Lacks("n0", asks, 4) != name || f.RoomBeside("n0", asks, 4) != 0 {
				t.Errorf("%s %s find room", amount, name)
			}
			for range 4 {
				f.Burden("n0", asks, +1)
				if f.RoomBeside("n0", k.besideGPUs(asksFor("1", name)), 4) != 0 {
					t.Errorf("beside %s %s there is room", amount, name)
				}
			}
			for range 4 {
				f.Burden("n0", asks, -1)
			}
			if got := f.RoomBeside("n0", k.besideGPUs(asksFor("1", name)), 4); got != 4 {
				t.Errorf("after %s %s there is room for %d", amount, name, got)
			}
		}
	}
}

// Ports conflict as they do for kube-scheduler: on one address, or if one of the pods has it on all addresses.
func TestPortsOfAddresses(t *testing.T) {
	port := func(addresses ...string) *corev1.Pod {
		pod := asksFor("1", "memory")
		for _, address := range addresses {
			pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports,
				corev1.ContainerPort{HostPort: 80, HostIP: address})
		}
		return pod
	}
	k := &kinds{gpus: config.Resources{"nvidia.com/gpu"}}
	for _, c := range []struct {
		first, second *corev1.Pod
		both          bool
	}{
		{port("127.0.0.1"), port("10.0.0.1"), true},
		{port("127.0.0.1"), port("127.0.0.1"), false},
		{port("127.0.0.1"), port(""), false},
		{port("0.0.0.0"), port("127.0.0.1"), false},
		{port(""), port("0.0.0.0"), false},
		{port("127.0.0.1", ""), port("10.0.0.1"), false},
		{port("127.0.0.1", "10.0.0.1"), port("10.0.0.2"), true},
		{port("127.0.0.1", "10.0.0.1"), port("10.0.0.1"), false},
	} {
		f := topology.NewFleet([]string{"domain"}, "domain")
		f.SetNode(topology.Node{Name: "n0", Labels: map[string]string{"domain": "d"}, Flavor: "H100", GPUs: 8,
			Beside: topology.NewAmounts(map[string]int64{"memory": 1 << 37, "pods": 110})})
		for _, pod := range []*corev1.Pod{c.first, c.second} {
			if f.RoomBeside("n0", k.besideGPUs(pod), 1) != 1 {
				t.Errorf("%v finds no room on an empty node", pod.Spec.Containers[0].Ports)
			}
		}
		f.Burden("n0", k.besideGPUs(c.first), +1)
		if both := f.RoomBeside("n0", k.besideGPUs(c.second), 1) == 1; both != c.both {
			t.Errorf("%v beside %v: %v", c.second.Spec.Containers[0].Ports, c.first.Spec.Containers[0].Ports, both)
		}
	}
}
