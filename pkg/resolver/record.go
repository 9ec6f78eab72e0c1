package resolver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Text is the conflict set as it is hashed: a line for each entry, in order, of the action, the owner, NAMESPACE/NAME
// of the Run, the GPUs and the probability, with one space between them and a line feed after each line.
func Text(published []rqv1.Conflict) string {
	var text strings.Builder
	for _, c := range published {
		fmt.Fprintf(&text, "%s %s %s/%s %d %s\n", c.Action, c.Owner, c.Run.Namespace, c.Run.Name, c.GPUs, c.Probability)
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
