package resolver

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Text is the conflict set as it is hashed: a line for each entry, in order, of the action, the owner, NAMESPACE/NAME
// of the Run, the GPUs, the probability and, of an entry that has one, the priority, with one space between them and a
// line feed after each line.
func Text(published []rqv1.Conflict) string {
	var text strings.Builder
	for _, c := range published {
		fmt.Fprintf(&text, "%s %s %s/%s %d %s", c.Action, c.Owner, c.Run.Namespace, c.Run.Name, c.GPUs, c.Probability)
		if c.Priority != nil {
			fmt.Fprintf(&text, " %d", *c.Priority)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// Digest is the SHA-256 of Text, in hexadecimal (R21).
func Digest(published []rqv1.Conflict) string {
	sum := sha256.Sum256([]byte(Text(published)))
	return hex.EncodeToString(sum[:])
}

// Tickets are the tickets of a published conflict set, in its order.
func Tickets(published []rqv1.Conflict) []Ticket {
	var tickets []Ticket
	for _, c := range published {
		if c.Action == rqv1.CutLottery {
			tickets = append(tickets, Ticket{Owner: c.Owner, Run: c.Run})
		}
	}
	return tickets
}

// TotalOf is how much may be cut in all; nil when nothing may.
func TotalOf(conflicts []rqv1.Conflict) *rqv1.ConflictTotal {
	if len(conflicts) == 0 {
		return nil
	}
	out := &rqv1.ConflictTotal{Total: int32(len(conflicts))}
	for i := range conflicts {
		out.GPUs += conflicts[i].GPUs
	}
	return out
}

// Likeliest returns the entries of a conflict set that are the likeliest to be carried out, in its order: so many at
// most. Of entries that are alike the first ones are taken.
func Likeliest(conflicts []rqv1.Conflict, most int) []rqv1.Conflict {
	if len(conflicts) <= most {
		return conflicts
	}
	order := make([]int, len(conflicts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Compare(Likelihood(conflicts[j].Probability), Likelihood(conflicts[i].Probability))
	})
	order = order[:most]
	slices.Sort(order)
	out := make([]rqv1.Conflict, most)
	for i, at := range order {
		out[i] = conflicts[at]
	}
	return out
}

// Likelihood reads a probability as conflict sets have it; 0 when it is none.
func Likelihood(probability string) float64 {
	p, err := strconv.ParseFloat(probability, 64)
	if err != nil {
		return 0
	}
	return p
}
