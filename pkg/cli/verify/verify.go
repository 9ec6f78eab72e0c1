// Package verify runs a Reservation's lottery again: "kubectl runs explain --verify".
package verify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// Values of a verification's verdict.
const (
	verdictValid      = "valid"
	verdictInvalid    = "invalid"
	verdictUnrevealed = "unrevealed"
)

// verification is what came out of running a Reservation's lottery again. It is what "kubectl runs explain --verify"
// prints, as text or as data.
type verification struct {
	Reservation string                `json:"reservation"`
	Namespace   string                `json:"namespace"`
	Run         string                `json:"run"`
	State       rqv1.ReservationState `json:"state"`
	Verdict     string                `json:"verdict"`
	// Differs says what is wrong with an invalid record.
	Differs []string    `json:"differs,omitempty"`
	At      metav1.Time `json:"at"`
	// RevealsAt is when a record is revealed that is not yet.
	RevealsAt         *metav1.Time      `json:"revealsAt,omitempty"`
	ActivatedAt       *metav1.MicroTime `json:"activatedAt,omitempty"`
	Commitment        string            `json:"commitment,omitempty"`
	Nonce             string            `json:"nonce,omitempty"`
	ConflictSetDigest string            `json:"conflictSetDigest,omitempty"`
	Seed              string            `json:"seed,omitempty"`
	Draws             []drawn           `json:"draws,omitempty"`
	Cuts              []rqv1.Cut        `json:"cuts,omitempty"`
}

// drawn is one ticket drawn: its owner out of so many owners, then it out of so many tickets of that owner. Cut is
// false when the ticket turned out not to be needed, or others of its owner, which have a lower priority, pay for it.
type drawn struct {
	Owner   rqv1.Owner          `json:"owner"`
	Owners  int                 `json:"owners"`
	Run     rqv1.NamespacedName `json:"run"`
	Tickets int                 `json:"tickets"`
	Cut     bool                `json:"cut"`
	// PaidBy are those who end instead.
	PaidBy []rqv1.NamespacedName `json:"paidBy,omitempty"`
}

// Run runs the lottery of a published record again.
func Run(r *rqv1.Reservation, now time.Time) verification {
	v := verification{
		Reservation: r.Name,
		Namespace:   r.Namespace,
		Run:         view.FullName(r.Spec.RunRef),
		State:       view.StateOf(r),
		Verdict:     verdictValid,
		At:          metav1.NewTime(now),
		ActivatedAt: r.Status.ActivatedAt,
		Draws:       drawsOf(r),
		Cuts:        r.Status.Cuts,
	}
	if l := r.Status.Lottery; l != nil {
		v.Commitment, v.Nonce, v.ConflictSetDigest = l.Commitment, l.Nonce, l.ConflictSetDigest
		v.Seed = seedOf(l.Nonce, r.Status.ConflictSet)
	}
	if v.Nonce == "" && len(v.Draws) == 0 && len(v.Cuts) == 0 {
		v.Verdict = verdictUnrevealed
		if !view.HasEnded(r) {
			v.RevealsAt = &r.Spec.EarliestStart
		}
		if want := resolver.Digest(r.Status.ConflictSet); v.ConflictSetDigest != "" && v.ConflictSetDigest != want {
			v.Differs = []string{fmt.Sprintf("conflictSetDigest is %q, but the conflict set has the SHA-256 %s.",
				v.ConflictSetDigest, want)}
		}
	} else {
		v.Differs = resolver.Verify(r)
	}
	if len(v.Differs) > 0 {
		v.Verdict = verdictInvalid
	}
	return v
}

// seedOf is what every draw follows from (R21); empty while the nonce is not revealed, or when it is none.
func seedOf(nonce string, published []rqv1.Conflict) string {
	raw, err := hex.DecodeString(nonce)
	if err != nil || len(raw) != sha256.Size {
		return ""
	}
	seed := resolver.Seed([sha256.Size]byte(raw), published)
	return hex.EncodeToString(seed[:])
}

// drawsOf counts among how many each draw was made. Owners are told apart without regard to case (R20).
func drawsOf(r *rqv1.Reservation) []drawn {
	if r.Status.Lottery == nil {
		return nil
	}
	left := map[string][]rqv1.NamespacedName{}
	for _, c := range r.Status.ConflictSet {
		if c.Action == rqv1.CutLottery {
			owner := strings.ToLower(string(c.Owner))
			left[owner] = append(left[owner], c.Run)
		}
	}
	var draws []drawn
	for _, d := range r.Status.Lottery.Draws {
		owner := strings.ToLower(string(d.Owner))
		draws = append(draws, drawn{Owner: d.Owner, Owners: len(left), Run: d.Run, Tickets: len(left[owner]),
			PaidBy: d.PaidBy,
			Cut: slices.ContainsFunc(r.Status.Cuts, func(c rqv1.Cut) bool {
				return c.Action == rqv1.CutLottery &&
					c.Run == d.Run
			})})
		left[owner] = slices.DeleteFunc(left[owner], func(run rqv1.NamespacedName) bool { return run == d.Run })
		if len(left[owner]) == 0 {
			delete(left, owner)
		}
	}
	return draws
}
