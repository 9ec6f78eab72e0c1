package book

import (
	"fmt"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// contradicts says how a pod, as the API server has admitted it, asks for other GPUs than its Lease would say; empty
// where it does not. Admission may add containers or requests to what a Run says, in some of its pods only. A spare
// holds its GPUs and asks for none.
func (z *shaper) contradicts(m *member) string {
	g, asks := m.gang, z.nodes.podGPUs(m.pod)
	pays := g.full.GPUsPerPod
	switch {
	case m.standIn || pays == 0:
		return ""
	case m.part.Spare && asks == 0:
		return ""
	case m.part.Spare:
		return fmt.Sprintf("pod %s was admitted with a request for %d GPUs, and a spare is to ask for none: %s",
			m.pod.Name, asks, seeAdmission)
	case asks != pays:
		return fmt.Sprintf("pod %s was admitted with a request for %d GPUs, and the Run pays for %d a pod: %s",
			m.pod.Name, asks, pays, seeAdmission)
	}
	if other := z.nodes.asksBut(m.pod, g.resource); other != "" {
		return fmt.Sprintf("pod %s was admitted with a request for %s, and the Run pays for %s: %s", m.pod.Name, other,
			g.resource, seeAdmission)
	}
	return ""
}

// seeAdmission is where to look for what a Run's own words do not say.
const seeAdmission = "look at gpusPerPod, at the template's containers and initContainers, and at what admission " +
	"adds to pods (webhooks, LimitRanges)"

// mismatch refuses a pod a place that contradicts its Run. A gang that waits gives all back, and its pods are made
// again; one that runs goes on without this pod.
func (x *starter) mismatch(m *member, why string, now time.Time) *plan.Refusal {
	g := m.gang
	if !g.started() && !g.over() && !g.opportunistic() {
		if !g.denied() || !g.denial.rests {
			x.turns.deny(g, Objection{Why: why}, now)
		}
		return g.refusal
	}
	refusal := plan.OtherResource(g.full, why)
	if !m.part.Spare && g.started() && !g.opportunistic() {
		x.waiting.refuse(g, refusal)
	}
	return refusal
}
