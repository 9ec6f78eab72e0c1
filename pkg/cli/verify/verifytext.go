package verify

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// PrintVerification prints a verification, and fails unless the record is valid, so that scripts can tell.
func PrintVerification(out io.Writer, o *session.Output, v verification) error {
	var err error
	if o.ForPeople() {
		err = writeVerification(out, v)
	} else {
		err = o.PrintData(out, v, session.About("Reservation", v.Reservation))
	}
	switch {
	case err != nil:
		return err
	case v.Verdict == verdictInvalid:
		return session.Fail(session.ExitInvalid, "the record of %s is not valid", v.name())
	case v.Verdict == verdictUnrevealed:
		return &session.Failure{Code: session.ExitUnrevealed}
	}
	return nil
}

// name is the Reservation with its namespace.
func (v *verification) name() string { return "Reservation " + v.Namespace + "/" + v.Reservation }

// writeVerification writes a verification for people: what was committed, what was drawn, what was done, and the
// verdict.
func writeVerification(out io.Writer, v verification) error {
	activated := ""
	if v.ActivatedAt != nil {
		activated = v.ActivatedAt.UTC().Format(time.RFC3339Nano)
	}
	facts := []view.Fact{
		{Label: "record", Lines: view.Only(fmt.Sprintf("%s of Run %s (%s)", v.name(), v.Run, v.State))},
		{Label: "commitment", Lines: view.Only(v.Commitment)},
		{Label: "activated", Lines: view.Only(activated)},
		{Label: "digest", Lines: view.Only(v.ConflictSetDigest)},
		{Label: "nonce", Lines: view.Only(v.Nonce)},
		{Label: "seed", Lines: view.Only(v.Seed)},
		{Label: "drawn", Lines: v.drawLines()},
		{Label: "executed", Lines: v.cutLines()},
		{Label: "verdict", Lines: v.verdictLines()},
	}
	var text strings.Builder
	view.WriteFacts(&text, "", strings.ToUpper, facts)
	_, err := io.WriteString(out, text.String())
	return err
}

func (v *verification) drawLines() []string {
	if len(v.Draws) == 0 && v.Nonce != "" {
		return view.Only("nothing: no lottery was needed")
	}
	var lines []string
	for i, d := range v.Draws {
		words := fmt.Sprintf("%d. owner %s of %s, ticket %s of %s", i+1, d.Owner, view.Counted(d.Owners, "owner"),
			view.FullName(d.Run), view.Counted(d.Tickets, "ticket"))
		if len(d.PaidBy) > 0 {
			var names []string
			for _, run := range d.PaidBy {
				names = append(names, view.FullName(run))
			}
			words += "; paid by " + strings.Join(names, ", ") + ", of lower priority, which ends instead"
			if len(names) > 1 {
				words = strings.TrimSuffix(words, "which ends instead") + "which end instead"
			}
		} else if !d.Cut {
			words += "; taken back, since the others were enough"
		}
		lines = append(lines, words)
	}
	return lines
}

func (v *verification) cutLines() []string {
	if len(v.Cuts) == 0 && v.Nonce != "" {
		return view.Only("nothing")
	}
	return view.CutsInWords(v.Cuts)
}

// verdictLines says whether the record is valid, and if not what differs or when it can be known.
func (v *verification) verdictLines() []string {
	switch {
	case v.Verdict == verdictInvalid:
		return append([]string{"not valid"}, v.Differs...)
	case v.Verdict == verdictValid:
		return []string{"valid", "The commitment, the conflict set, the draws and the cuts agree."}
	case v.ActivatedAt != nil && v.RevealsAt != nil:
		return view.Only("not revealed yet: the conflict set is fixed, and the draw is published in a moment")
	case v.RevealsAt != nil:
		return view.Only(fmt.Sprintf(
			"not revealed yet: the draw is made and published when the Reservation activates, %s (%s)",
			view.ZonedClock(*v.RevealsAt, v.At.Time), view.Countdown(*v.RevealsAt, v.At.Time)))
	}
	return view.Only("nothing to check: the Reservation ended without a draw")
}
