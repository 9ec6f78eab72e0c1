package topology

import (
	"fmt"
	"strings"
)

// Kind says which limit a Request ran into.
type Kind string

const (
	// UnknownFlavor: the fleet has no node of the flavor.
	UnknownFlavor Kind = "UnknownFlavor"
	// PodTooLarge: no node of the flavor has as many GPUs as one pod wants.
	PodTooLarge Kind = "PodTooLarge"
	// GroupTooLarge: no fabric domain holds the largest group, even when empty.
	GroupTooLarge Kind = "GroupTooLarge"
	// FleetTooSmall: the fleet does not hold the request, even when empty.
	FleetTooSmall Kind = "FleetTooSmall"
	// NoRoom: the request fits an empty fleet, but not what is free now.
	NoRoom Kind = "NoRoom"
	// Unpayable: there is room, but the Purse does not cover it.
	Unpayable Kind = "Unpayable"
)

// Shortfall is why a Request does not fit, as data (R29). All amounts are GPUs.
type Shortfall struct {
	Kind   Kind
	Flavor string
	// Flavors are the flavors that exist, sorted; for UnknownFlavor.
	Flavors []string
	// WantedGPUs is the whole request, and PlaceableGPUs the part of it that has a place (and a payer, for Unpayable):
	// now, or in the empty fleet for FleetTooSmall. A group that does not fit whole counts as far as its best domain
	// holds it. ShortGPUs is the difference; for PodTooLarge and GroupTooLarge, UnitGPUs less LargestGPUs.
	WantedGPUs, PlaceableGPUs, ShortGPUs int
	// UnitGPUs is what must lie together and is too large, a pod or a group, and LargestGPUs the most that any place
	// holds when empty; for PodTooLarge and GroupTooLarge.
	UnitGPUs, LargestGPUs int
	// Domain is the fabric domain that comes nearest to holding the first group that has no place, and DomainGPUs how
	// much of it; "" when groups are not confined or no domain has any room.
	Domain     string
	DomainGPUs int
	// ExcludedGPUs are free on schedulable nodes that the request excluded, in pieces that its pods could use, and
	// ExcludedNode is the first of these nodes by name.
	ExcludedGPUs int
	ExcludedNode string
}

// String is the shortfall in a sentence, without a full stop.
func (s *Shortfall) String() string {
	var b strings.Builder
	switch s.Kind {
	case UnknownFlavor:
		fmt.Fprintf(&b, "no node has GPUs of type %q", s.Flavor)
		if len(s.Flavors) > 0 {
			fmt.Fprintf(&b, "; the fleet has %s", strings.Join(s.Flavors, ", "))
		}
		return b.String()
	case PodTooLarge:
		fmt.Fprintf(&b, "a pod needs %d %s GPUs on one node and the largest node has %d", s.UnitGPUs, s.Flavor, s.LargestGPUs)
	case GroupTooLarge:
		fmt.Fprintf(&b, "a group needs %d %s GPUs in one domain", s.UnitGPUs, s.Flavor)
		if s.Domain != "" {
			fmt.Fprintf(&b, ", %s, where its other pods run", s.Domain)
		}
		fmt.Fprintf(&b, ", but at most %d fit even when it is empty", s.LargestGPUs)
	case FleetTooSmall:
		fmt.Fprintf(&b, "%d %s GPUs are needed, and at most %d fit even when the fleet is empty: short by %d",
			s.WantedGPUs, s.Flavor, s.PlaceableGPUs, s.ShortGPUs)
	case NoRoom:
		fmt.Fprintf(&b, "%d %s GPUs are needed, and %d fit now: short by %d", s.WantedGPUs, s.Flavor, s.PlaceableGPUs,
			s.ShortGPUs)
	case Unpayable:
		fmt.Fprintf(&b, "there is room for %d %s GPUs but only %d of them can be paid for: short by %d",
			s.WantedGPUs, s.Flavor, s.PlaceableGPUs, s.ShortGPUs)
	}
	if s.Kind == NoRoom && s.Domain != "" {
		fmt.Fprintf(&b, "; domain %s comes closest, with room for %d GPUs of the next group", s.Domain, s.DomainGPUs)
	}
	if s.ExcludedGPUs > 0 {
		fmt.Fprintf(&b, "; %d more GPUs are free on nodes that these pods may not use", s.ExcludedGPUs)
	}
	return b.String()
}
