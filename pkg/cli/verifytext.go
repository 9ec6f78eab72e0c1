package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// printVerification prints a verification, and fails unless the record is valid, so that scripts can tell.
func (e *explainer) printVerification(v verification) error {
	var err error
	if e.output.forPeople() {
		err = writeVerification(e.Out, v)
	} else {
		err = e.output.printData(e.Out, v, about("Reservation", v.Reservation))
	}
	switch {
	case err != nil:
		return err
	case v.Verdict == verdictInvalid:
		return fail(exitInvalid, "the record of %s is not valid", v.name())
	case v.Verdict == verdictUnrevealed:
		return &failure{code: exitUnrevealed}
	}
	return nil
}

// name is the Reservation with its namespace.
func (v *verification) name() string { return "Reservation " + v.Namespace + "/" + v.Reservation }

// writeVerification writes a verification for people: what was committed, what was drawn, what was done, and the verdict.
func writeVerification(out io.Writer, v verification) error {
	activated := ""
	if v.ActivatedAt != nil {
		activated = v.ActivatedAt.UTC().Format(time.RFC3339Nano)
	}
	facts := []fact{
		{"record", only(fmt.Sprintf("%s of Run %s (%s)", v.name(), v.Run, v.State))},
		{"commitment", only(v.Commitment)},
		{"activated", only(activated)},
		{"digest", only(v.ConflictSetDigest)},
		{"nonce", only(v.Nonce)},
		{"seed", only(v.Seed)},
		{"drawn", v.drawLines()},
		{"executed", v.cutLines()},
		{"verdict", v.verdictLines()},
	}
	var text strings.Builder
	writeFacts(&text, "", strings.ToUpper, facts)
	_, err := io.WriteString(out, text.String())
	return err
}

func (v *verification) drawLines() []string {
	if len(v.Draws) == 0 && v.Nonce != "" {
		return only("nothing: no lottery was needed")
	}
	var lines []string
	for i, d := range v.Draws {
		words := fmt.Sprintf("%d. owner %s of %s, ticket %s of %s", i+1, d.Owner, counted(d.Owners, "owner"), fullName(d.Run), counted(d.Tickets, "ticket"))
		if !d.Cut {
			words += "; taken back, since the others were enough"
		}
		lines = append(lines, words)
	}
	return lines
}

func (v *verification) cutLines() []string {
	if len(v.Cuts) == 0 && v.Nonce != "" {
		return only("nothing")
	}
	return cutsInWords(v.Cuts)
}

// verdictLines says whether the record is valid, and if not what differs or when it can be known.
func (v *verification) verdictLines() []string {
	switch {
	case v.Verdict == verdictInvalid:
		return append([]string{"not valid"}, v.Differs...)
	case v.Verdict == verdictValid:
		return []string{"valid", "The commitment, the conflict set, the draws and the cuts agree."}
	case v.ActivatedAt != nil && v.RevealsAt != nil:
		return only("not revealed yet: the conflict set is fixed, and the draw is published in a moment")
	case v.RevealsAt != nil:
		return only(fmt.Sprintf("not revealed yet: the draw is made and published when the Reservation activates, %s (%s)",
			at(*v.RevealsAt), countdown(*v.RevealsAt, v.At.Time)))
	}
	return only("nothing to check: the Reservation ended without a draw")
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
