package cli

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// tell says what has befallen a Run's GPU leases, and then how the Run is now, unless a reader would see no difference.
func (r *reporter) tell(f *followed) error {
	happenings := f.leases.take(r.eachLease)
	if r.print != nil {
		if f.run == nil || len(happenings) == 0 && f.said == f.run.ResourceVersion {
			return nil
		}
		f.said = f.run.ResourceVersion
		seen := sighting{Time: metav1.NewTime(r.now()), Changes: happenings}
		if !r.countless {
			seen.Leases = new(tally)
			*seen.Leases = f.leases.tally(f.run.UID)
		}
		return r.print(f.run, seen)
	}
	for i := range happenings {
		r.line(f.name, happenings[i].What)
	}
	if f.run == nil {
		return nil
	}
	counts := f.leases.tally(f.run.UID)
	timeless := r.standing(f.run, counts, time.Time{}) // a countdown that goes on is no change
	if f.said == timeless {
		return nil
	}
	f.said = timeless
	r.line(f.name, r.standing(f.run, counts, r.now()))
	return nil
}

// standing is how a Run stands, in a line.
func (r *reporter) standing(run *rqv1.Run, counts tally, now time.Time) string {
	leases := ""
	if phaseOf(run) == rqv1.RunRunning && !r.countless { // while a gang comes or goes, the lines about its GPU leases tell enough
		leases = counts.inWords(run)
	}
	notes := bracketed(pendingOf(run)) + noteOf("leases:", leases) + noteOf("starts", startOf(run, now)) + noteOf("at risk:", riskOf(run, now))
	return strings.TrimRight(fmt.Sprintf("%s  %-12s%s  %s", r.paint(string(phaseOf(run))), widthOf(run)+" GPUs", notes,
		printers.EscapeTerminal(run.Status.Message)), " ")
}

// noteOf is a note in brackets, or nothing when there is nothing to note.
func noteOf(what, text string) string {
	if text == "" {
		return ""
	}
	return bracketed(what + " " + text)
}

func bracketed(text string) string {
	if text == "" {
		return ""
	}
	return " [" + text + "]"
}

func (r *reporter) line(run types.NamespacedName, story string) {
	name := run.Name
	if r.namespaces {
		name = run.String()
	}
	r.nameWidth = max(r.nameWidth, len(name))
	fmt.Fprintf(r.out, "%s  %-*s  %s\n", r.now().Format(time.TimeOnly), r.nameWidth, name, story)
}

// paint pads a phase and, on a terminal, colours it.
func (r *reporter) paint(phase string) string {
	padded := fmt.Sprintf("%-9s", phase)
	colour := map[string]string{"Pending": "33", "Running": "32", "Completed": "36", "Failed": "31"}[phase]
	if !r.colours || colour == "" {
		return padded
	}
	return "\x1b[" + colour + "m" + padded + "\x1b[0m"
}
