package published

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/davidlangworthy/jobtree/pkg/config"
)

// TestWhatIsPublishedCanBeRead reads the configuration and the fleet back as they were.
func TestWhatIsPublishedCanBeRead(t *testing.T) {
	args, err := config.Parse([]byte("{topologyLevels: [zone, rack], fabricLevel: rack, " +
		"gpuResource: [a.com/gpu, b.com/tpu], spareRate: '0.25', healthPresets: [], " +
		"flavors: {H100: [h100, h100-sxm]}, cutsPerHour: 0}"))
	if err != nil {
		t.Fatal(err)
	}
	fleet := Fleet{Levels: []string{"zone", "rack"}, Domains: []Domain{
		{Values: []string{"a", "r1"}, GPUType: "H100", GPUs: 16, Free: 8, Promised: 4, Nodes: 2, OutOfService: 1,
			NodesByGPUs: map[int]int{8: 2}}}}
	data, err := Data(args, fleet)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"levels":["zone","rack"],"domains":[{"domain":["a","r1"],"gpuType":"H100","gpus":16,"free":8,` +
		`"promised":4,"nodes":2,"outOfService":1,"nodesByGPUs":{"8":2}}]}`
	if diff := cmp.Diff(want, data[KeyFleet]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	gotArgs, err := Args(data)
	if diff := cmp.Diff(args, gotArgs); err != nil || diff != "" {
		t.Errorf("%v (-published +read):\n%s", err, diff)
	}
	gotFleet, err := FleetOf(data)
	if diff := cmp.Diff(fleet, gotFleet); err != nil || diff != "" {
		t.Errorf("%v (-published +read):\n%s", err, diff)
	}
}

// TestAnotherVersionsConfiguration ignores what is not known, and takes the default for what is not there.
func TestAnotherVersionsConfiguration(t *testing.T) {
	args, err := Args(map[string]string{KeyConfig: "unheardOf: 1\nflavorLabel: gpu.example.com/type\n"})
	if err != nil || args.FlavorLabel != "gpu.example.com/type" ||
		!cmp.Equal(args.NoticePeriod, &metav1.Duration{Duration: 30 * time.Second}) {
		t.Errorf("%v: %+v", err, args)
	}
	for _, data := range []map[string]string{nil, {KeyConfig: "]", KeyFleet: "]"}, {KeyConfig: "spareRate: x"}} {
		if _, err := Args(data); err == nil {
			t.Errorf("%v is read", data)
		}
		if _, err := FleetOf(data); err == nil {
			t.Errorf("%v is read", data)
		}
	}
}

// TestManyDomains are told by wider ones.
func TestManyDomains(t *testing.T) {
	fleet := Fleet{Levels: []string{"zone", "rack"}}
	for i := range 1200 {
		fleet.Domains = append(fleet.Domains, Domain{Values: []string{fmt.Sprint("z", i%2), fmt.Sprintf("r%04d", i)},
			GPUType: []string{"A", "B"}[i%2], GPUs: 8, Free: 2, Promised: 1, Nodes: 1, OutOfService: i % 2})
	}
	want := Fleet{Levels: []string{"zone"}, Domains: []Domain{
		{Values: []string{"z0"}, GPUType: "A", GPUs: 4800, Free: 1200, Promised: 600, Nodes: 600},
		{Values: []string{"z1"}, GPUType: "B", GPUs: 4800, Free: 1200, Promised: 600, Nodes: 600, OutOfService: 600}}}
	if diff := cmp.Diff(want, fleet.Bounded()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (Fleet{}).Bounded(); got.Domains == nil {
		t.Error("an empty fleet has no list")
	}
}
