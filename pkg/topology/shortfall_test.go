package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShortfall(t *testing.T) {
	small := sketch("west/a n1=8 n2=8-4", "west/b n3=8-8 n4=8-2", "east/c n5=4")
	for _, c := range []struct {
		name    string
		fleet   *Fleet
		request Request
		want    Shortfall
		says    string
	}{
		{
			"no such flavor", small, Request{Flavor: "B200", GPUsPerPod: 8, Groups: groups(2, 2)},
			Shortfall{Kind: UnknownFlavor, Flavor: "B200", Flavors: []string{"H100"}, WantedGPUs: 32, ShortGPUs: 32},
			`no node has GPUs of type "B200"; the fleet has H100`,
		}, {
			"no node at all", sketch(), Request{Flavor: "H100", GPUsPerPod: 8, Groups: groups(1, 1)},
			Shortfall{Kind: UnknownFlavor, Flavor: "H100", WantedGPUs: 8, ShortGPUs: 8},
			`no node has GPUs of type "H100"`,
		}, {
			"pod larger than any node", small, Request{Flavor: "H100", GPUsPerPod: 16, Groups: groups(1, 2)},
			Shortfall{Kind: PodTooLarge, Flavor: "H100", WantedGPUs: 32, ShortGPUs: 8, UnitGPUs: 16, LargestGPUs: 8},
			"a pod needs 16 H100 GPUs on one node and the largest node has 8",
		}, {
			"group larger than any domain", small, Request{Flavor: "H100", GPUsPerPod: 4, Groups: groups(2, 5), Confined: true},
			Shortfall{Kind: GroupTooLarge, Flavor: "H100", WantedGPUs: 40, ShortGPUs: 4, UnitGPUs: 20, LargestGPUs: 16},
			"a group needs 20 H100 GPUs in one domain, but at most 16 fit even when it is empty",
		}, {
			"bound groups larger than their domain", small,
			Request{Flavor: "H100", GPUsPerPod: 4, Groups: []Group{{Index: 0, Pods: 1, Domain: "east/c"},
				{Index: 1, Pods: 1, Domain: "east/c"}}, Confined: true},
			Shortfall{Kind: GroupTooLarge, Flavor: "H100", WantedGPUs: 8, ShortGPUs: 4, UnitGPUs: 8, LargestGPUs: 4,
				Domain: "east/c"},
			"a group needs 8 H100 GPUs in one domain, east/c, where its other pods run, but at most 4 fit even when it is empty",
		}, {
			"bound to a domain that is gone", small,
			Request{Flavor: "H100", GPUsPerPod: 4, Groups: []Group{{Index: 0, Pods: 1, Domain: "east/z"}}, Confined: true},
			Shortfall{Kind: GroupTooLarge, Flavor: "H100", WantedGPUs: 4, ShortGPUs: 4, UnitGPUs: 4, Domain: "east/z"},
			"a group needs 4 H100 GPUs in one domain, east/z, where its other pods run, but at most 0 fit even when it is empty",
		}, {
			"more than the fleet", small, Request{Flavor: "H100", GPUsPerPod: 4, Groups: groups(10, 1)},
			Shortfall{Kind: FleetTooSmall, Flavor: "H100", WantedGPUs: 40, PlaceableGPUs: 36, ShortGPUs: 4},
			"40 H100 GPUs are needed, and at most 36 fit even when the fleet is empty: short by 4",
		}, {
			"more groups than the domains hold", small, Request{Flavor: "H100", GPUsPerPod: 4, Groups: groups(3, 3),
				Confined: true},
			Shortfall{Kind: FleetTooSmall, Flavor: "H100", WantedGPUs: 36, PlaceableGPUs: 24, ShortGPUs: 12},
			"36 H100 GPUs are needed, and at most 24 fit even when the fleet is empty: short by 12",
		}, {
			"no room now", small, Request{Flavor: "H100", GPUsPerPod: 4, Groups: groups(1, 8)},
			Shortfall{Kind: NoRoom, Flavor: "H100", WantedGPUs: 32, PlaceableGPUs: 20, ShortGPUs: 12, Domain: ""},
			"32 H100 GPUs are needed, and 20 fit now: short by 12",
		}, {
			"no room for a whole group", small, Request{Flavor: "H100", GPUsPerPod: 4, Groups: groups(1, 4), Confined: true},
			Shortfall{Kind: NoRoom, Flavor: "H100", WantedGPUs: 16, PlaceableGPUs: 12, ShortGPUs: 4, Domain: "west/a",
				DomainGPUs: 12},
			"16 H100 GPUs are needed, and 12 fit now: short by 4; domain west/a comes closest, with room for 12 GPUs of the " +
				"next group",
		}, {
			"no room for the second group", small, Request{Flavor: "H100", GPUsPerPod: 4, Groups: groups(2, 3), Confined: true},
			Shortfall{Kind: NoRoom, Flavor: "H100", WantedGPUs: 24, PlaceableGPUs: 16, ShortGPUs: 8, Domain: "east/c",
				DomainGPUs: 4},
			"24 H100 GPUs are needed, and 16 fit now: short by 8; domain east/c comes closest, with room for 4 GPUs of the " +
				"next group",
		}, {
			"no room beside the pods of a group", small,
			Request{Flavor: "H100", GPUsPerPod: 4, Groups: []Group{{Index: 0, Pods: 3, Domain: "west/b"}}, Confined: true},
			Shortfall{Kind: NoRoom, Flavor: "H100", WantedGPUs: 12, PlaceableGPUs: 4, ShortGPUs: 8, Domain: "west/b",
				DomainGPUs: 4},
			"12 H100 GPUs are needed, and 4 fit now: short by 8; domain west/b comes closest, with room for 4 GPUs of the " +
				"next group",
		}, {
			"a new group beside bound pods", sketch("west/a n1=20-4"),
			Request{Flavor: "H100", GPUsPerPod: 4, Groups: []Group{{Index: 0, Pods: 1, Domain: "west/a"}, {Index: 1, Pods: 4}},
				Confined: true},
			Shortfall{Kind: NoRoom, Flavor: "H100", WantedGPUs: 20, PlaceableGPUs: 16, ShortGPUs: 4, Domain: "west/a",
				DomainGPUs: 12},
			"20 H100 GPUs are needed, and 16 fit now: short by 4; domain west/a comes closest, with room for 12 GPUs of the " +
				"next group",
		}, {
			"room on excluded nodes only", sketch("west/a n1=8 n2=8"),
			Request{Flavor: "H100", GPUsPerPod: 8, Groups: groups(2, 1),
				Excluded: func(node string) bool { return node == "n2" }},
			Shortfall{Kind: NoRoom, Flavor: "H100", WantedGPUs: 16, PlaceableGPUs: 8, ShortGPUs: 8, ExcludedGPUs: 8,
				ExcludedNode: "n2"},
			"16 H100 GPUs are needed, and 8 fit now: short by 8; 8 more GPUs are free on nodes that these pods may not use",
		}, {
			"pieces on nodes of which none is excluded", sketch("west/a n1=8-1 n2=8-3 n3=8-8"),
			Request{Flavor: "H100", GPUsPerPod: 8, Groups: groups(1, 1), Excluded: func(string) bool { return false }},
			Shortfall{Kind: NoRoom, Flavor: "H100", WantedGPUs: 8, ShortGPUs: 8},
			"8 H100 GPUs are needed, and 0 fit now: short by 8",
		}, {
			"pieces on excluded nodes", sketch("west/a n1=8-1 n2=8-2 n3=8-4"),
			Request{Flavor: "H100", GPUsPerPod: 4, Groups: groups(3, 1),
				Excluded: func(node string) bool { return node != "n3" }},
			Shortfall{Kind: NoRoom, Flavor: "H100", WantedGPUs: 12, PlaceableGPUs: 4, ShortGPUs: 8, ExcludedGPUs: 8,
				ExcludedNode: "n1"},
			"12 H100 GPUs are needed, and 4 fit now: short by 8; 8 more GPUs are free on nodes that these pods may not use",
		}, {
			"every node cordoned", sketch("west/a n1=8! n2=8!"), Request{Flavor: "H100", GPUsPerPod: 8, Groups: groups(1, 1)},
			Shortfall{Kind: NoRoom, Flavor: "H100", WantedGPUs: 8, ShortGPUs: 8},
			"8 H100 GPUs are needed, and 0 fit now: short by 8",
		}, {
			"nobody pays for all of it", sketch("west/a n1=8 n2=8"),
			Request{Flavor: "H100", GPUsPerPod: 4, Groups: groups(1, 4), Purse: byLabel{"fabric", map[string]int{"a": 3}, 0}},
			Shortfall{Kind: Unpayable, Flavor: "H100", WantedGPUs: 16, PlaceableGPUs: 12, ShortGPUs: 4},
			"there is room for 16 H100 GPUs but only 12 of them can be paid for: short by 4",
		}, {
			"nobody pays here", sketch("west/a n1=8 n2=8"),
			Request{Flavor: "H100", GPUsPerPod: 4, Groups: groups(1, 4), Purse: byLabel{"fabric", map[string]int{"b": 3}, 0}},
			Shortfall{Kind: Unpayable, Flavor: "H100", WantedGPUs: 16, ShortGPUs: 16},
			"there is room for 16 H100 GPUs but only 0 of them can be paid for: short by 16",
		}, {
			"each domain has a payer but both together exceed a cap", sketch("west/a n1=8", "west/b n2=8"),
			Request{Flavor: "H100", GPUsPerPod: 4, Groups: groups(2, 2), Confined: true,
				Purse: byLabel{"fabric", map[string]int{"a": 2, "b": 2}, 3}},
			Shortfall{Kind: Unpayable, Flavor: "H100", WantedGPUs: 16, PlaceableGPUs: 12, ShortGPUs: 4, Domain: "west/b",
				DomainGPUs: 4},
			"there is room for 16 H100 GPUs but only 12 of them can be paid for: short by 4",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			placement, got := c.fleet.Pack(c.request)
			if got == nil {
				t.Fatalf("fits: %v", placement)
			}
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.says, got.String()); diff != "" {
				t.Error(diff)
			}
			if len(placement.Slots) != 0 {
				t.Errorf("a placement nevertheless: %v", placement)
			}
		})
	}
}
