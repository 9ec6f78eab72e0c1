package watch

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// tell says what has befallen a Run's GPU leases, and then how the Run is now, unless a reader would see no
// difference.
func (r *reporter) tell(f *followed) error {
	happenings := f.leases.Take(r.eachLease)
	if r.print != nil {
		if f.run == nil || len(happenings) == 0 && f.said == f.run.ResourceVersion {
			return nil
		}
		f.said = f.run.ResourceVersion
		seen := sighting{Time: metav1.NewTime(r.now()), Changes: happenings}
		if !r.countless {
			seen.Leases = new(view.Tally)
			*seen.Leases = f.leases.Tally(f.run.UID)
		}
		return r.print(f.run, seen)
	}
	for i := range happenings {
		r.line(f.name, happenings[i].What)
	}
	if f.run == nil {
		return nil
	}
	timeless := r.standing(f, time.Time{}) // a countdown that goes on is no change
	if f.said == timeless {
		return nil
	}
	f.said = timeless
	r.line(f.name, r.standing(f, r.now()))
	return nil
}

// standing is how a Run stands, in a line.
func (r *reporter) standing(f *followed, now time.Time) string {
	run, leases := f.run, ""
	// while a gang comes or goes, the lines about its GPU leases tell enough, and its width does once it is there, but for
	// spares
	if view.PhaseOf(run) == rqv1.RunRunning && !r.countless && (run.Spec.GroupSpares() > 0 || !f.leases.Matches(run)) {
		leases = f.leases.Tally(run.UID).InWords(run)
	}
	notes := view.Bracketed(view.PendingOf(run)) + view.NoteOf("leases:", leases) +
		view.NoteOf("starts", view.StartOf(run, now)) + view.Bracketed(view.RiskOf(run, now))
	return strings.TrimRight(fmt.Sprintf("%s  %-12s%s  %s", view.Paint(view.StandingOf(run), r.colours),
		view.WidthOf(run)+" GPUs", notes,
		session.LocalTimes(printers.EscapeTerminal(run.Status.Message), now)), " ")
}

func (r *reporter) line(run types.NamespacedName, story string) {
	name := run.Name
	if r.namespaces {
		name = run.String()
	}
	name, story = r.names.In(name), r.names.In(story)
	r.nameWidth = max(r.nameWidth, len(name))
	fmt.Fprintf(r.out, "%s  %-*s  %s\n", r.now().Format(time.TimeOnly), r.nameWidth, name, story)
}
