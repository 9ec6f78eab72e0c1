package view

import (
	"fmt"
	"slices"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// inWords says what happened: to which rank, spare or shard, or to how many, and where. What concerns a whole gang
// says how much and who pays.
func (h *Happening) inWords() string {
	switch {
	case h.Verb == hasMoved:
		return h.moveInWords()
	case h.Verb == hasClosed && h.Role == rqv1.RoleBorrowed:
		return fmt.Sprintf("%s on %s ended: %s", h.subject(), NodesInWords(h.Nodes, false), h.Reason)
	case h.Verb == hasClosed && (h.Role == rqv1.RoleSpare || h.Reason == string(rqv1.ClosedNodeFailure)):
		return fmt.Sprintf("%s on %s closed: %s", h.subject(), NodesInWords(h.Nodes, false), h.Reason)
	}
	article, leases := "a", "GPU lease"
	switch h.Role {
	case rqv1.RoleBorrowed: // people borrow from sponsors, and this is nobody's loan
		article, leases = "an", "opportunistic "+leases
	case rqv1.RoleSpare:
		leases = "spare " + leases
	}
	if h.Leases == 1 {
		leases = article + " " + leases
	} else {
		leases = fmt.Sprintf("%d %ss", h.Leases, leases)
	}
	if h.Verb == hasClosed && slices.Max(h.Groups) > 0 {
		leases += " of " + Numbered("group", h.Groups)
	}
	paid := "paid by"
	if h.Relation == rqv1.RelationSponsor {
		paid = "borrowed from"
	}
	if h.Verb == hasOpened && h.Reason == string(rqv1.ReasonRepaid) {
		return fmt.Sprintf("%d GPUs on %s now %s %s/%s (%s)", h.GPUs, placesInWords(h.Nodes), paid, h.Budget, h.Envelope,
			h.Payer)
	}
	return fmt.Sprintf("%s %s (%s): %d GPUs on %s, %s %s/%s (%s)", h.Verb, leases, h.Reason, h.GPUs,
		placesInWords(h.Nodes), paid, h.Budget, h.Envelope, h.Payer)
}

// placesInWords names one node, and counts several.
func placesInWords(nodes []string) string {
	if len(nodes) == 1 {
		return nodes[0]
	}
	return fmt.Sprintf("%d nodes", len(nodes))
}

// moveInWords says from where to where, as far as that is known, and why.
func (h *Happening) moveInWords() string {
	way, why := NodesInWords(h.Nodes, false), h.Reason
	if len(h.From) > 0 {
		way = NodesInWords(h.From, false) + " → " + way
	}
	if h.After != "" {
		why += fmt.Sprintf("; %s of %s", h.After, placesInWords(h.From))
	}
	return fmt.Sprintf("%s: %s (%s)", h.subject(), way, why)
}

// subject is whom it befell.
func (h *Happening) subject() string {
	switch {
	case h.Role == rqv1.RoleActive:
		return Numbered("group", h.Groups) + " " + Numbered("rank", h.Indexes)
	case h.Role == rqv1.RoleSpare && h.Leases == 1:
		return fmt.Sprintf("spare %d", h.Indexes[0])
	case h.Role == rqv1.RoleSpare:
		return fmt.Sprintf("%d spares", h.Leases)
	case h.Leases == 1:
		return fmt.Sprintf("shard %d", h.Indexes[0])
	}
	return fmt.Sprintf("%d shards", h.Leases)
}

// rangesShown is how many ranges of numbers are listed; where there are more, they are counted.
const rangesShown = 4

// Numbered names what has numbers, which are in order: rank 3, ranks 0-3, 7 or 12 ranks.
func Numbered(what string, numbers []int32) string {
	if len(numbers) == 1 {
		return fmt.Sprintf("%s %d", what, numbers[0])
	}
	var ranges []string
	for first := 0; first < len(numbers); {
		last := first
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		text := fmt.Sprint(numbers[first])
		if last > first {
			text += fmt.Sprintf("-%d", numbers[last])
		}
		ranges = append(ranges, text)
		first = last + 1
	}
	if len(ranges) > rangesShown {
		return fmt.Sprintf("%d %ss", len(numbers), what)
	}
	return fmt.Sprintf("%ss %s", what, strings.Join(ranges, ", "))
}
