package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// planAnswer says when a Run starts and what stands in its way. It is what "kubectl runs plan" prints, as text or as data.
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
	// promise is nil when the Run has no date.
	*promise
	// StartsNow is how a Run that is asked about with -f would start; nil when it would wait.
	StartsNow *start `json:"startsNow,omitempty"`
	// Changes would make it start now, each by itself.
	Changes []change `json:"changes,omitempty"`
	AtRisk  []risk   `json:"atRisk,omitempty"`
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
		Phase:     phaseOf(run),
		GPUs:      run.Spec.Resources.TotalGPUs,
		GPUType:   run.Spec.Resources.GPUType,
		Submitted: run.CreationTimestamp,
		Looked:    lookedAt(run),
		Message:   run.Status.Message,
		AtRisk:    risksOf(run, now),
	}
	if run.Spec.Runtime != nil {
		a.MaxDuration = run.Spec.Runtime.MaxDuration
	}
	if w := waitOf(run, now); w != nil {
		var promises []promise
		if r != nil {
			promises = append(promises, promiseOf(r, now))
		}
		a.Reason, a.Message, a.Refusal, a.promise = w.Reason, w.Message, w.Refusal, w.promised(promises)
	}
	return a
}

// writePlan writes an answer for people.
func writePlan(out io.Writer, a planAnswer, wide bool) error {
	facts := []fact{{"run", only(a.Namespace + "/" + a.Run)}}
	if a.promise != nil {
		promised, err := a.facts(a.At.Time, wide)
		if err != nil {
			return err
		}
		facts = append(facts, promised...)
	} else if a.StartsNow != nil {
		facts = append(facts, fact{"starts", a.StartsNow.lines(wide)})
	} else if a.Phase == rqv1.RunPending {
		facts = append(facts, fact{"earliest start", only("none")})
	}
	var risks []string
	for i := range a.AtRisk {
		r := &a.AtRisk[i]
		risks = append(risks, fmt.Sprintf("from %s at %s (%s)", r.inWords(), at(r.At), countdown(r.At, a.At.Time)))
	}
	facts = append(facts,
		fact{"would help", helpLines(a.Refusal)},
		fact{"starts now with", changeLines(a.Changes)},
		fact{"phase", only(strings.TrimSuffix(string(a.Phase)+": "+a.standing(), ": "))},
		fact{"at risk", risks},
		fact{"could not be read", a.Unread},
	)
	var text strings.Builder
	writeFacts(&text, "", strings.ToUpper, facts)
	_, err := io.WriteString(out, text.String())
	return err
}

// standing says why the Run waits, or where it is.
func (a *planAnswer) standing() string {
	switch {
	case !a.Looked:
		return notLooked
	case a.Reason != "" && a.Message != "":
		return a.Reason + ": " + a.Message
	}
	return a.Message
}

func (p *planner) print(a planAnswer) error {
	if p.output.forPeople() {
		return writePlan(p.Out, a, p.output.wide())
	}
	return p.output.printData(p.Out, a, about("Run", a.Run))
}
