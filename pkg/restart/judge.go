package restart

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Death is one by the program's doing of which the Run's status does not tell yet.
type Death struct {
	rqv1.RunDeath
	// Again is when the pod was made, if it was made to start its rank again; else zero.
	Again time.Time
	// Ahead says that its kubelet's clock is: when it was is not known, and nothing is waited for that rests on it.
	Ahead bool
}

// History is what the status of a Run tells: it may be empty.
type History struct {
	Restarts *rqv1.RunRestartsStatus
	Deaths   []rqv1.RunDeath
	// Ranks is how many the Run has that have not done their work.
	Ranks int
}

// Verdict is what becomes of a Run whose ranks have died.
type Verdict struct {
	// Restarts is what the status is to tell, and Deaths are those that were judged, in the order in which they came.
	Restarts *rqv1.RunRestartsStatus
	Deaths   []rqv1.RunDeath
	// Failure is why the Run ends; nil when it goes on.
	Failure *Failure
	// Wait is when the deaths are to be judged that were not; zero when all were.
	Wait time.Time
}

// Judge judges deaths, those that came first before others, by the rules of their Run.
func Judge(rules Rules, past History, deaths []Death, now time.Time) Verdict {
	deaths = slices.Clone(deaths)
	slices.SortStableFunc(deaths, func(a, b Death) int {
		if order := a.At.Compare(b.At.Time); order != 0 {
			return order
		}
		return int(a.Index - b.Index)
	})
	j := judge{rules: rules, past: past, all: deaths, out: Verdict{Restarts: past.Restarts.DeepCopy()}}
	for i := range deaths {
		if wait := j.consider(deaths[i], now); !wait.IsZero() {
			j.out.Wait = wait
			break
		}
	}
	return j.out
}

type judge struct {
	rules Rules
	past  History
	all   []Death
	out   Verdict
}

// consider judges one death. It returns when that can be done if it cannot be now.
func (j *judge) consider(d Death, now time.Time) (wait time.Time) {
	if j.belongs(&d) {
		d.Incident, d.Action = j.out.Restarts.Incidents, j.rules.On(d.ExitCode)
		if ready := j.out.Restarts.Ready; ready != nil && (d.Restarts == 0 || d.At.After(ready.Time)) {
			j.out.Restarts.Ready = nil // whom its kubelet has started again before was ready as well
		}
		j.note(d.RunDeath, d.Action == rqv1.ActionFail, ByCode)
		return time.Time{}
	}
	next := j.next(d.At)
	d.Incident, d.First, d.Action = next.Incidents, true, j.rules.On(d.ExitCode)
	if d.Action == rqv1.ActionRestart && j.blamedBefore(d.Index, next) {
		if until := d.At.Add(Gathering); !d.Ahead && now.Before(until) {
			return until
		}
		if !j.together() {
			d.Action = rqv1.ActionMove
		}
	}
	j.out.Restarts = next
	switch {
	case d.Action == rqv1.ActionFail:
		j.note(d.RunDeath, true, ByCode)
	case next.Counted > j.rules.Limit:
		j.note(d.RunDeath, true, ByLimit)
	default:
		j.note(d.RunDeath, len(j.nodes(d.RunDeath, next)) >= mostNodes, ByNodes)
	}
	return time.Time{}
}

// note adds a death that was judged. The Run ends with the first that has it end.
func (j *judge) note(d rqv1.RunDeath, ends bool, why Why) {
	ends = ends && !j.rules.Theirs
	if ends {
		d.Action = ""
	}
	j.out.Deaths = append(j.out.Deaths, d)
	if ends && j.out.Failure == nil {
		j.out.Failure = &Failure{Why: why, Death: d, Deaths: j.known(), Restarts: *j.out.Restarts}
	}
}

// belongs reports whether a death is of the last incident. One of a rank that was started again in it is not if all
// ranks were ready, time enough has passed, or it dies for the third time: then it has not died of the others. A rank
// that is known to have died in it was started again since, whatever its kubelet's clock says.
func (j *judge) belongs(d *Death) bool {
	last := j.out.Restarts
	if last == nil {
		return false
	}
	if over := last.Began.Add(Together); last.Ready != nil && !d.At.Time.Before(over) {
		return false
	}
	died := j.diedIn(last.Incidents, d.Index)
	if died == 0 && (d.Again.IsZero() || d.Again.Before(last.Began.Time)) {
		return true
	}
	return last.Ready == nil && d.At.Sub(last.Began.Time) < Settling && died < 2
}

// diedIn returns how often a rank has died in an incident, as far as that is known.
func (j *judge) diedIn(incident, index int32) (times int) {
	for _, d := range j.known() {
		if d.Incident == incident && d.Index == index {
			times++
		}
	}
	return times
}

// next returns the incident that begins at an instant.
func (j *judge) next(at metav1.Time) *rqv1.RunRestartsStatus {
	next := &rqv1.RunRestartsStatus{Incidents: 1, Counted: 1, Began: at}
	if last := j.out.Restarts; last != nil {
		next.Incidents = last.Incidents + 1
		if last.Ready == nil || at.Sub(last.Ready.Time) < j.rules.Quiet {
			next.Counted = last.Counted + 1
		}
	}
	return next
}

// known returns the deaths that are known, those that were judged now last.
func (j *judge) known() []rqv1.RunDeath { return slices.Concat(j.past.Deaths, j.out.Deaths) }

// counts reports whether a death was the first of an incident before another that counts with it.
func counts(d *rqv1.RunDeath, with *rqv1.RunRestartsStatus) bool {
	return Counts(d, with) && d.Incident < with.Incidents
}

// Counts reports whether a death was the first of an incident that counts with the last, or of that itself.
func Counts(d *rqv1.RunDeath, last *rqv1.RunRestartsStatus) bool {
	return last != nil && d.First && d.Incident > last.Incidents-last.Counted
}

// Lasts reports whether a death is of the last incident, and not all ranks have been ready again since.
func Lasts(d *rqv1.RunDeath, last *rqv1.RunRestartsStatus) bool {
	return last != nil && last.Ready == nil && d.Incident == last.Incidents
}

// blamedBefore reports whether a rank died first in an incident before one that counts with it.
func (j *judge) blamedBefore(index int32, next *rqv1.RunRestartsStatus) bool {
	return slices.ContainsFunc(j.known(), func(d rqv1.RunDeath) bool { return d.Index == index && counts(&d, next) })
}

// nodes returns the nodes on which a rank died first, in incidents that count together, in order.
func (j *judge) nodes(last rqv1.RunDeath, next *rqv1.RunRestartsStatus) (nodes []string) {
	for _, d := range append(j.known(), last) {
		if d.Index == last.Index && (d.Pod == last.Pod || counts(&d, next)) && !slices.Contains(nodes, d.Node) {
			nodes = append(nodes, d.Node)
		}
	}
	return nodes
}

// together reports whether all ranks have died, and none of them before the others: nobody is to blame then.
func (j *judge) together() bool {
	if len(j.all) < j.past.Ranks || j.past.Ranks < 2 {
		return false
	}
	return j.all[1].At.Sub(j.all[0].At.Time) < atOnce
}
