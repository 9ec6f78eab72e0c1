package lifecycle

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/ending"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/restart"
)

// restarts is what becomes of ranks that have died by their program's doing (R34).
type restarts struct {
	rules   restart.Rules
	verdict restart.Verdict
	// untold are the deaths of which the status does not tell, by pod.
	untold map[types.UID]bool
}

func restartsOf(f *facts, c *cuts, r *roster) restarts {
	out := restarts{rules: restart.RulesOf(&f.Run.Spec), untold: map[types.UID]bool{}}
	if out.rules.Limit == 0 || f.Run.Ended() || f.Shape != nil || c.final != nil {
		return out
	}
	var deaths []restart.Death
	for index, pod := range r.ranks {
		if pod == nil || c.doom(pod) {
			continue
		}
		if d, died := f.diedAnew(index, pod); died {
			deaths = append(deaths, d)
			out.untold[pod.UID] = true
		}
	}
	past := restart.History{Restarts: f.Run.Status.Restarts, Deaths: f.Run.Status.Deaths}
	for _, pod := range r.core() {
		if pod == nil || pod.Status.Phase != corev1.PodSucceeded {
			past.Ranks++
		}
	}
	out.verdict = restart.Judge(out.rules, past, deaths, f.Now)
	for i := range out.verdict.Deaths {
		delete(out.untold, out.verdict.Deaths[i].Pod)
	}
	return out
}

// diedAnew returns how a rank has died of which the status does not tell yet. Its kubelet may have started it again.
func (f *facts) diedAnew(index int, pod *corev1.Pod) (restart.Death, bool) {
	if f.diedItself(pod) {
		e, _ := ownEnd(pod)
		return f.death(index, pod, e), deathOf(f.Run, pod) == nil
	}
	if !active(pod) || !bound(pod) || !f.Stands(pod.Spec.NodeName) {
		return restart.Death{}, false
	}
	if e, late := f.lateEnd(pod); late {
		return f.death(index, pod, e), deathOf(f.Run, pod) == nil
	}
	e, began, times, restarted := ending.Restarted(pod)
	if !restarted || e.Cause != rqv1.CauseProgram || deathAfter(f.Run, pod, times) != nil {
		return restart.Death{}, false
	}
	d := f.death(index, pod, e)
	d.Restarts = times
	if times > 1 {
		d.Again = began
	}
	return d, !f.bygone(&d)
}

// bygone reports whether a rank that its kubelet has started again died of what is over, so that a status which is full
// need not tell of it: before the last incident, or before all ranks were ready again after that.
func (f *facts) bygone(d *restart.Death) bool {
	r := f.Run.Status.Restarts
	return f.full() && r != nil && (d.At.Before(&r.Began) || r.Ready != nil && !d.At.After(r.Ready.Time))
}

func (f *facts) death(index int, pod *corev1.Pod, e ending.Ending) restart.Death {
	return restart.Death{RunDeath: deathIn(index, pod, e, f.Now), Again: madeAgain(pod), Ahead: e.At.After(f.Now)}
}

// movesOn reports whether a rank that its kubelet has started again is to leave its node.
func (t *footing) movesOn(pod *corev1.Pod) bool {
	if t.restarts.rules.Limit == 0 || !active(pod) {
		return false
	}
	_, _, times, restarted := ending.Restarted(pod)
	if !restarted {
		return false
	}
	d := deathAfter(t.facts.Run, pod, times)
	return d != nil && d.Action == rqv1.ActionMove
}

// movedOn reports whether a Lease was of a rank that has left its node since it died there.
func (f *facts) movedOn(lease *rqv1.Lease) bool {
	return f.toldOf(lease, func(d *rqv1.RunDeath) bool { return d.Action == rqv1.ActionMove })
}

// diedItself reports whether a rank's pod has died because of its program, on a node that stands.
func (f *facts) diedItself(pod *corev1.Pod) bool {
	if !present(pod) || !bound(pod) || !f.Stands(pod.Spec.NodeName) {
		return false
	}
	e, ended := ending.Of(pod)
	return ended && e.Cause == rqv1.CauseProgram
}

// fell reports whether a rank has died because of its program, or was not ready in time, on a node that stands.
func (f *facts) fell(pod *corev1.Pod) bool { return f.diedItself(pod) || f.late(pod) }

// madeAgain returns when a pod was made that was made to start its rank again; zero for another.
func madeAgain(pod *corev1.Pod) time.Time {
	if _, again := rank.RestartOf(pod); again {
		return pod.CreationTimestamp.Time
	}
	return time.Time{}
}

// forgives reports whether a pod that has failed does not end its Run: its rank is started again.
func (r *restarts) forgives(f *facts, pod *corev1.Pod) bool {
	return r.rules.Limit > 0 && r.verdict.Failure == nil && f.fell(pod)
}

// rests returns until when a rank that has died waits before it is started again; zero for not at all.
func (r *restarts) rests(f *facts, pod *corev1.Pod) time.Time {
	again := madeAgain(pod)
	until := again.Add(restart.Pause)
	if again.IsZero() || !f.Now.Before(until) {
		return time.Time{}
	}
	return until
}

// due returns when ranks that have died are looked at again; zero for not at all.
func (r *restarts) due(s *situation) (at time.Time) {
	at = r.verdict.Wait
	for _, pod := range s.roster.ranks {
		if !s.facts.diedItself(pod) {
			continue
		}
		if until := r.rests(s.facts, pod); !until.IsZero() && (at.IsZero() || until.Before(at)) {
			at = until
		}
	}
	return at
}

// startsAnew reports whether a pod that has died because of its program may go, so that its rank is made anew: its end
// is in the ledger, and in the Run's status as far as that has room for it.
func (t *footing) startsAnew(pod *corev1.Pod) bool {
	f, r := t.facts, &t.restarts
	if !r.forgives(f, pod) {
		return false
	}
	if r.untold[pod.UID] || !f.onRecord(pod) || !r.told(f) {
		return false
	}
	return f.late(pod) || f.leaseOf[pod.UID] == nil && r.rests(f, pod).IsZero() // who is late has a Lease until it is gone
}

// told reports whether the Run's status tells of the last incident.
func (r *restarts) told(f *facts) bool {
	is, told := r.verdict.Restarts, f.Run.Status.Restarts
	return is == nil || told != nil && told.Incidents == is.Incidents
}

// restartOf returns the record of a rank that is started again after its last pod has died: of one that runs the book
// knows which that was, of one that starts the Run's status tells.
func restartOf(f *facts, index int) (rank.Replacement, bool) {
	status := &f.Run.Status
	died := cmp.Or(f.Died[index], f.goneLate(index))
	at := -1
	for i := range status.Deaths {
		d := &status.Deaths[i]
		last := d.Pod == died || f.leaseOf[d.Pod] != nil && f.podOf[d.Pod] == nil // or is gone just now
		if !saysRunning(f.Run) {
			last = status.Restarts != nil && status.Restarts.Ready == nil && d.Incident == status.Restarts.Incidents
		}
		if int(d.Index) == index && d.Action != "" && last {
			at = i
		}
	}
	if at < 0 {
		return rank.Replacement{After: died}, died != "" && restart.RulesOf(&f.Run.Spec).Limit > 0
	}
	d := &status.Deaths[at]
	made := rank.Replacement{After: d.Pod}
	if d.Action == rqv1.ActionMove {
		made.Lost, made.Sign = d.Node, ending.Words(d)
	}
	return made, true
}

// setRestarts tells of the incidents, and when all ranks were ready again after the last: once the status tells of all
// deaths that it has room for.
func setRestarts(next *rqv1.RunStatus, s *situation) {
	r := s.restarts.verdict.Restarts
	if r == nil {
		return
	}
	next.Restarts = r.DeepCopy()
	news := slices.ContainsFunc(s.restarts.verdict.Deaths, func(d rqv1.RunDeath) bool { return tellsOf(next.Deaths, &d) })
	if r.Ready == nil && !news && len(s.restarts.untold) == 0 && s.phase == rqv1.RunRunning &&
		!slices.ContainsFunc(s.roster.core(), s.facts.unready) {
		now := metav1.NewTime(s.facts.Now.Truncate(time.Second))
		next.Restarts.Ready = &now
	}
}

// unready reports whether a rank neither does its work nor has done it.
func (f *facts) unready(pod *corev1.Pod) bool {
	switch {
	case pod == nil || pod.DeletionTimestamp != nil:
		return true
	case pod.Status.Phase == corev1.PodSucceeded:
		return false
	}
	ready, _ := rank.ReadySince(pod)
	return !ready || !f.runs(pod)
}
