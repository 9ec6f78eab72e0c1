package plan

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// planAnswer says when a Run starts and what stands in its way. It is what "kubectl runs plan" prints, as text or as
// data.
type planAnswer struct {
	At          metav1.Time      `json:"at"`
	Run         string           `json:"run"`
	Namespace   string           `json:"namespace"`
	Owner       rqv1.Owner       `json:"owner"`
	Phase       rqv1.RunPhase    `json:"phase"`
	GPUs        int32            `json:"gpus"`
	GPUType     string           `json:"gpuType"`
	Submitted   metav1.Time      `json:"submitted"`
	MaxDuration *metav1.Duration `json:"maxDuration,omitempty"`
	// Looked is false until the scheduler has looked at the Run as it is now.
	Looked  bool   `json:"looked"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Refusal is the same as data, as the scheduler has published it.
	Refusal *rqv1.RunRefusal `json:"refusal,omitempty"`
	// Promise is nil when the Run has no date.
	*view.Promise
	// Queue is the Run's place in line when it has none.
	Queue *rqv1.RunQueue `json:"queue,omitempty"`
	// StartsNow is how a Run that is asked about with -f would start; nil when it would wait.
	StartsNow *start `json:"startsNow,omitempty"`
	// Changes would make it start now, each by itself.
	Changes []change `json:"changes,omitempty"`
	// AtRisk is what the Run's status lists of those who may cut it, and AtRiskTotal how many there are.
	AtRisk      []view.Risk `json:"atRisk,omitempty"`
	AtRiskTotal int32       `json:"atRiskTotal,omitempty"`
	// Maintenance says which nodes of the Run are to be out of service by plan, and when.
	Maintenance string `json:"maintenance,omitempty"`
	// NotAsked are the scheduling rules, beside those that a plan knows, that its pods use; the scheduler asks about them.
	NotAsked []string `json:"notAsked,omitempty"`
	// Notes say what was taken for granted.
	Notes []string `json:"notes,omitempty"`
	// Unread says what could not be read, and so is missing above.
	Unread []string `json:"unread,omitempty"`
}

// planOf answers from a Run and its Reservation, which is nil when there is none or it could not be read.
func planOf(run *rqv1.Run, r *rqv1.Reservation, now time.Time) planAnswer {
	a := planAnswer{
		At:        metav1.NewTime(now),
		Run:       run.Name,
		Namespace: run.Namespace,
		Owner:     run.Spec.Owner,
		Phase:     view.PhaseOf(run),
		GPUs:      run.Spec.Resources.TotalGPUs,
		GPUType:   run.Spec.Resources.GPUType,
		Submitted: run.CreationTimestamp,
		Looked:    view.LookedAt(run),
		Message:   run.Status.Message,
		AtRisk:    view.RisksOf(run, now),

		AtRiskTotal: run.Status.AtRiskTotal,
		Maintenance: view.MaintenanceOf(run),
	}
	if run.Spec.Runtime != nil {
		a.MaxDuration = run.Spec.Runtime.MaxDuration
	}
	if w := view.WaitOf(run, now); w != nil {
		var promises []view.Promise
		if r != nil {
			promises = append(promises, view.PromiseOf(r, now))
		}
		a.Reason, a.Message, a.Refusal, a.Promise = w.Reason, w.Message, w.Refusal, w.Promised(promises)
		if a.Promise == nil {
			a.Queue = w.Queue
		}
	}
	return a
}

// writePlan writes an answer for people.
func writePlan(out io.Writer, a planAnswer, form session.Form) error {
	facts := []view.Fact{{Label: "run", Lines: view.Only(a.Namespace + "/" + a.Run)}}
	if a.Promise != nil {
		promised, err := a.Facts(a.At.Time, form)
		if err != nil {
			return err
		}
		facts = append(facts, promised...)
	} else if a.StartsNow != nil {
		facts = append(facts, view.Fact{Label: "starts", Lines: a.StartsNow.lines(form.Wide)})
	} else if a.Phase == rqv1.RunPending {
		facts = append(facts, view.Fact{Label: "starts by", Lines: view.Only("no date")},
			view.Fact{Label: "in line", Lines: view.Only(view.PlaceInLine(a.Queue, a.GPUType, a.At.Time))})
	}
	var risks []string
	for i := range a.AtRisk {
		r := &a.AtRisk[i]
		when := fmt.Sprintf(" at %s (%s)", view.Clock(r.At, a.At.Time), view.Countdown(r.At, a.At.Time))
		risks = append(risks, r.InWords(when))
	}
	if more := int(a.AtRiskTotal) - len(a.AtRisk); more > 0 {
		risks = append(risks, fmt.Sprintf("and from %d more Reservations", more))
	}
	facts = append(facts,
		view.Fact{Label: "would help", Lines: view.HelpLines(a.Refusal)},
		view.Fact{Label: "starts now with", Lines: changeLines(a.Changes)},
		view.Fact{Label: "phase", Lines: view.Only(strings.TrimSuffix(string(a.Phase)+": "+a.standing(), ": "))},
		view.Fact{Label: "at risk", Lines: risks},
		view.Fact{Label: "maintenance", Lines: view.Only(a.Maintenance)},
		view.Fact{Label: "not asked about", Lines: a.NotAsked},
		view.Fact{Label: "note", Lines: a.Notes},
		view.Fact{Label: "could not be read", Lines: a.Unread},
	)
	var text strings.Builder
	view.WriteFacts(&text, "", strings.ToUpper, facts)
	_, err := io.WriteString(out, session.LocalTimes(text.String(), a.At.Time))
	return err
}

// standing says why the Run waits, or where it is.
func (a *planAnswer) standing() string {
	switch {
	case !a.Looked:
		return view.NotLooked
	case a.Reason != "" && a.Message != "":
		return a.Reason + ": " + a.Message
	}
	return a.Message
}

func (p *planner) print(ctx context.Context, c client.Client, a planAnswer) error {
	if p.output.ForPeople() {
		session.Show(ctx, c, a.Namespace, &a)
		return writePlan(p.Out, a, p.FormOf(p.output))
	}
	return p.output.PrintData(p.Out, a, session.About("Run", a.Run))
}
