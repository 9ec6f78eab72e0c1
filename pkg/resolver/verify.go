package resolver

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Verify checks a Reservation's published record offline, with nothing else at hand (R21), and returns a sentence for
// each thing that is not as it must be; none when the record is valid. A record that is not revealed yet is not valid.
// It does not tell whether each cut was needed, since the record does not say who held which GPUs.
func Verify(r *rqv1.Reservation) []string {
	v := &verifier{status: &r.Status}
	if r.Status.Lottery != nil {
		v.lottery = *r.Status.Lottery
	}
	if v.unused() {
		return []string{"The Reservation has not been activated: nothing has been drawn or cut."}
	}
	v.checkEntries()
	v.checkDigest()
	if nonce, ok := v.checkNonce(); ok {
		v.checkDraws(nonce)
	}
	v.checkCuts()
	return v.found
}

// verifier collects what is wrong with one record.
type verifier struct {
	status  *rqv1.ReservationStatus
	lottery rqv1.Lottery
	found   []string
}

func (v *verifier) say(format string, args ...any) {
	v.found = append(v.found, fmt.Sprintf(format, args...))
}

// unused says that there is nothing in the record that an activation writes.
func (v *verifier) unused() bool {
	l := &v.lottery
	return v.status.ActivatedAt == nil && l.ConflictSetDigest == "" && l.Nonce == "" && len(l.Draws) == 0 &&
		len(v.status.Cuts) == 0
}

var probability = regexp.MustCompile(`^(0(\.[0-9]+)?|1(\.0+)?)$`)

// checkEntries finds entries that could be read in two ways, and Runs that are listed twice for one action: they would
// have two tickets.
func (v *verifier) checkEntries() {
	seen := map[entryKey]bool{}
	for i, c := range v.status.ConflictSet {
		if !slices.Contains(actions, c.Action) || ambiguous(string(c.Owner)) || ambiguous(c.Run.Namespace) ||
			ambiguous(c.Run.Name) || c.GPUs < 1 || !probability.MatchString(c.Probability) {
			v.say("Entry %d of the conflict set is malformed: %q.", i+1, Text([]rqv1.Conflict{c}))
		}
		if key := (entryKey{c.Run, c.Action}); seen[key] {
			v.say("Entry %d of the conflict set repeats %s of %s.", i+1, c.Action, name(c.Run))
		} else {
			seen[key] = true
		}
	}
}

// ambiguous says that a name could not be told from what stands beside it in the hashed text.
func ambiguous(name string) bool { return name == "" || strings.ContainsAny(name, " \n/") }

func (v *verifier) checkDigest() {
	if v.status.ActivatedAt == nil {
		v.say("activatedAt is missing, although the record has been written at activation.")
	}
	if got, want := v.lottery.ConflictSetDigest, Digest(v.status.ConflictSet); got != want {
		v.say("conflictSetDigest is %q, but the conflict set has the SHA-256 %s.", got, want)
	}
	listed := ptr.Deref(TotalOf(v.status.ConflictSet), rqv1.ConflictTotal{})
	if said := v.status.Conflicts; said != nil && *said != listed {
		v.say("The conflict set lists %d entries of %d GPUs, but should have %d of %d: it is incomplete.", listed.Total,
			listed.GPUs, said.Total, said.GPUs)
	}
}

// checkNonce returns the nonce if it has been revealed.
func (v *verifier) checkNonce() ([32]byte, bool) {
	l := &v.lottery
	if l.Nonce == "" {
		v.say("The nonce is not revealed yet: the draw cannot be checked.")
		if len(l.Draws) > 0 || len(v.status.Cuts) > 0 {
			v.say("There are %d draws and %d cuts, although they may be published only with the nonce.", len(l.Draws),
				len(v.status.Cuts))
		}
		return [32]byte{}, false
	}
	raw, err := hex.DecodeString(l.Nonce)
	if err != nil || len(raw) != 32 || hex.EncodeToString(raw) != l.Nonce {
		v.say("nonce is %q, which is not 32 bytes in lower-case hexadecimal.", l.Nonce)
		return [32]byte{}, false
	}
	nonce := [32]byte(raw)
	if want := Commitment(nonce); l.Commitment != want {
		v.say("commitment is %q, but the revealed nonce has the SHA-256 %s.", l.Commitment, want)
	}
	return nonce, true
}

// checkDraws draws again.
func (v *verifier) checkDraws(nonce [32]byte) {
	d := NewDraw(nonce, v.status.ConflictSet)
	for i, got := range v.lottery.Draws {
		want, ok := d.Next()
		switch {
		case !ok:
			v.say("Draw %d is %s of %s, but no ticket was left.", i+1, name(got.Run), got.Owner)
			return
		case got.Owner != want.Owner || got.Run != want.Run:
			v.say("Draw %d is %s of %s, but the seed draws %s of %s.", i+1, name(got.Run), got.Owner, name(want.Run), want.Owner)
		}
		v.checkPayment(i, &got)
	}
}

// checkPayment checks that who ends instead of a Run that was drawn may be made to: Runs of the same owner that have
// tickets, and had a lower priority before anybody could know the draw (R44).
func (v *verifier) checkPayment(i int, d *rqv1.Draw) {
	for _, run := range d.PaidBy {
		v.checkPayer(i, d, run)
		if v.payments(run) > 1 {
			v.say("Draw %d is said to be paid by %s, which pays more than once.", i+1, name(run))
		}
	}
	if len(d.PaidBy) > maxPayers {
		v.say("Draw %d is %s, said to be paid by %d Runs; at most %d may pay.", i+1, name(d.Run), len(d.PaidBy), maxPayers)
	}
	pays := v.payments(d.Run) > 0
	switch {
	case pays && len(d.PaidBy) > 0:
		v.say("Draw %d is %s, which is said to pay for another and to be paid for.", i+1, name(d.Run))
	case pays && i == len(v.lottery.Draws)-1:
		v.say("Draw %d, the last, is %s, which ends by it and cannot pay for another.", i+1, name(d.Run))
	case len(d.PaidBy) > 0 && v.ends(d.Run):
		v.say("Draw %d is %s, which is cut although others are said to pay for it.", i+1, name(d.Run))
	}
}

// checkPayer checks one of those who are said to pay for a draw.
func (v *verifier) checkPayer(i int, d *rqv1.Draw, run rqv1.NamespacedName) {
	of, by := v.entry(d.Run), v.entry(run)
	switch {
	case of == nil || by == nil:
		v.say("Draw %d is %s, said to be paid by %s, and the conflict set does not list both for the lottery.", i+1,
			name(d.Run), name(run))
	case !sameOwner(by.Owner, of.Owner):
		v.say("Draw %d is %s of %s, said to be paid by %s of %s: only its own owner's Runs may pay.", i+1, name(d.Run),
			of.Owner, name(run), by.Owner)
	case by.Priority == nil || of.Priority == nil || *by.Priority >= *of.Priority:
		v.say("Draw %d is %s of priority %s, said to be paid by %s of priority %s, which is not lower.", i+1, name(d.Run),
			priorityOf(of), name(run), priorityOf(by))
	}
	if !v.ends(run) {
		v.say("Draw %d is said to be paid by %s, which is not cut.", i+1, name(run))
	}
}

// entry returns the ticket of a Run in the conflict set; nil when it has none.
func (v *verifier) entry(run rqv1.NamespacedName) *rqv1.Conflict {
	for i := range v.status.ConflictSet {
		if c := &v.status.ConflictSet[i]; c.Run == run && c.Action == rqv1.CutLottery {
			return c
		}
	}
	return nil
}

func priorityOf(c *rqv1.Conflict) string {
	if c.Priority == nil {
		return "unknown"
	}
	return strconv.Itoa(int(*c.Priority))
}

// name writes NAMESPACE/NAME.
func name(run rqv1.NamespacedName) string { return run.Namespace + "/" + run.Name }
