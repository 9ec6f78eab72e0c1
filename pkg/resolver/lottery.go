package resolver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Ticket is a Run's part in the lottery. A Run has one, whatever its size (R20).
type Ticket struct {
	Owner rqv1.Owner
	Run   rqv1.NamespacedName
}

// Nonce is the secret of one Reservation: HMAC-SHA-256 of its UID. It need not be stored anywhere.
func Nonce(key []byte, uid types.UID) [32]byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(uid))
	return [32]byte(mac.Sum(nil))
}

// Commitment is what is published of a nonce before it is revealed: its SHA-256, in hexadecimal (R21).
func Commitment(nonce [32]byte) string {
	sum := sha256.Sum256(nonce[:])
	return hex.EncodeToString(sum[:])
}

// Seed is what the draws of an activation follow from: the SHA-256 of the 32 bytes of the nonce followed by the 32
// bytes of the conflict set's digest (R21).
func Seed(nonce [32]byte, published []rqv1.Conflict) [32]byte {
	digest := sha256.Sum256([]byte(Text(published)))
	return sha256.Sum256(append(nonce[:], digest[:]...))
}

// Draw is a draw in progress. The numbers it draws are HMAC-SHA-256(seed, counter), where the counter is written in
// decimal and starts at 0.
type Draw struct {
	mac     hash.Hash // keyed with the seed
	counter uint64
	left    urn
}

// NewDraw starts the draw among the tickets of a published conflict set.
func NewDraw(nonce [32]byte, published []rqv1.Conflict) *Draw {
	return newDraw(Seed(nonce, published), newUrn(Tickets(published)))
}

func newDraw(seed [32]byte, tickets urn) *Draw {
	return &Draw{mac: hmac.New(sha256.New, seed[:]), left: tickets}
}

// Next draws an owner, each with the same probability, then one of its tickets, each with the same probability, and
// takes that ticket out (R20). It returns false when no ticket is left.
func (d *Draw) Next() (Ticket, bool) {
	if len(d.left) == 0 {
		return Ticket{}, false
	}
	owner := d.below(len(d.left))
	ticket := d.below(len(d.left[owner]))
	drawn := d.left[owner][ticket]
	d.left = d.left.without(owner, ticket)
	return drawn, true
}

// below draws a number from 0 to n−1: the first 8 bytes of the next HMAC, as a big-endian number, modulo n. Numbers
// from the largest multiple of n below 2^64 upwards are passed over, since they would favor small results. Nothing is
// drawn when n is 1.
func (d *Draw) below(n int) int {
	if n == 1 {
		return 0
	}
	modulus := uint64(n)
	over := (math.MaxUint64%modulus + 1) % modulus // 2^64 mod n
	for {
		d.mac.Reset()
		d.mac.Write(strconv.AppendUint(nil, d.counter, 10))
		d.counter++
		if x := binary.BigEndian.Uint64(d.mac.Sum(nil)); x <= math.MaxUint64-over {
			return int(x % modulus)
		}
	}
}

// urn holds tickets by owner. Owners are sorted by their names in lower case, byte by byte, and the tickets of one by
// namespace and name. No owner is without tickets.
type urn [][]Ticket

func newUrn(tickets []Ticket) urn {
	byOwner := map[string][]Ticket{}
	var owners []string
	for _, t := range tickets {
		owner := ownerKey(t.Owner)
		if byOwner[owner] == nil {
			owners = append(owners, owner)
		}
		byOwner[owner] = append(byOwner[owner], t)
	}
	slices.Sort(owners)
	u := make(urn, len(owners))
	for i, owner := range owners {
		u[i] = byOwner[owner]
		slices.SortFunc(u[i], func(a, b Ticket) int { return byName(a.Run, b.Run) })
	}
	return u
}

// ownerKey tells owners apart: without regard to case.
func ownerKey(owner rqv1.Owner) string { return strings.ToLower(string(owner)) }

func sameOwner(a, b rqv1.Owner) bool { return ownerKey(a) == ownerKey(b) }

// without returns an urn that lacks one ticket; u stays as it is.
func (u urn) without(owner, ticket int) urn {
	if len(u[owner]) == 1 {
		return slices.Delete(slices.Clone(u), owner, owner+1)
	}
	u = slices.Clone(u)
	u[owner] = slices.Delete(slices.Clone(u[owner]), ticket, ticket+1)
	return u
}
