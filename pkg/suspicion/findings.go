package suspicion

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/ending"
	"github.com/davidlangworthy/jobtree/pkg/restart"
)

// Finding is a mark against a node.
type Finding struct {
	Node string
	Mark
}

// Told returns what the status of one Run says against nodes, and when it may say more without having changed; zero for
// never. Nothing is said that is older than a node is suspect for it.
func Told(run *rqv1.Run, now time.Time) (findings []Finding, due time.Time) {
	for i := range run.Status.Deaths {
		d := &run.Status.Deaths[i]
		if now.Sub(d.At.Time) > For {
			continue
		}
		switch {
		case d.Cause == rqv1.CauseNode && ending.Suspect(d):
			findings = append(findings, found(run, d, EndedRank, ""))
		case livesElsewhere(run, d):
			lives := run.Status.Restarts.Ready.Add(restart.Together)
			if now.Before(lives) {
				due = lives
				continue
			}
			findings = append(findings, found(run, d, LivesElsewhere, ", and lives on another node"))
		}
	}
	return findings, due
}

// livesElsewhere reports whether a death is of the last incident, the rank was moved for it, and all ranks have been
// ready since.
func livesElsewhere(run *rqv1.Run, d *rqv1.RunDeath) bool {
	r := run.Status.Restarts
	return d.First && d.Action == rqv1.ActionMove && run.Status.Phase == rqv1.RunRunning && r != nil && r.Ready != nil &&
		d.Incident == r.Incidents
}

func found(run *rqv1.Run, d *rqv1.RunDeath, why Why, more string) Finding {
	return Finding{d.Node, Mark{At: d.At.Time, Why: why, Owner: run.Spec.Owner,
		Message: fmt.Sprintf("Run %s/%s: %s%s", run.Namespace, run.Name, ending.ToldOnNode(d), more)}}
}

// together is how close the deaths of two owners' ranks have to be.
const together = time.Hour

// Tally is who has died where of late.
type Tally struct {
	byNode map[string]map[types.UID]blamed
	nodes  map[types.UID][]string // those on which a Run is tallied
}

type blamed struct {
	owner rqv1.Owner
	run   string
	death rqv1.RunDeath
}

// NewTally returns an empty tally.
func NewTally() *Tally {
	return &Tally{byNode: map[string]map[types.UID]blamed{}, nodes: map[types.UID][]string{}}
}

// Note notes where ranks of a Run have died by themselves, the last of those on each node that were the first of their
// incident.
func (t *Tally) Note(run *rqv1.Run) {
	t.Drop(run.UID)
	for _, d := range firsts(run) {
		if t.byNode[d.Node] == nil {
			t.byNode[d.Node] = map[types.UID]blamed{}
		}
		if old, known := t.byNode[d.Node][run.UID]; !known {
			t.nodes[run.UID] = append(t.nodes[run.UID], d.Node)
		} else if !d.At.After(old.death.At.Time) {
			continue
		}
		t.byNode[d.Node][run.UID] = blamed{run.Spec.Owner, run.Namespace + "/" + run.Name, d}
	}
}

// Drop forgets a Run.
func (t *Tally) Drop(run types.UID) {
	for _, node := range t.nodes[run] {
		delete(t.byNode[node], run)
		if len(t.byNode[node]) == 0 {
			delete(t.byNode, node)
		}
	}
	delete(t.nodes, run)
}

// firsts returns the deaths for which a rank of a Run is blamed. A Run that is not restarted ends with its first.
func firsts(run *rqv1.Run) (deaths []rqv1.RunDeath) {
	var earliest *rqv1.RunDeath
	for i := range run.Status.Deaths {
		d := &run.Status.Deaths[i]
		switch {
		case d.Cause != rqv1.CauseProgram:
		case d.First:
			deaths = append(deaths, *d)
		case d.Incident == 0 && (earliest == nil || d.At.Before(&earliest.At)):
			earliest = d
		}
	}
	if earliest != nil {
		deaths = append(deaths, *earliest)
	}
	return deaths
}

// On returns what speaks against the nodes on which a Run is tallied: that ranks of another owner have died there too,
// at about the time.
func (t *Tally) On(run types.UID, now time.Time) (findings []Finding) {
	for _, node := range t.nodes[run] {
		own := t.byNode[node][run]
		if now.Sub(own.death.At.Time) > For {
			continue
		}
		others := slices.SortedFunc(maps.Values(t.byNode[node]), func(a, b blamed) int { return cmp.Compare(a.run, b.run) })
		for _, other := range others {
			apart := own.death.At.Sub(other.death.At.Time)
			if other.owner == own.owner || apart.Abs() > together {
				continue
			}
			first, last := other, own
			if apart < 0 {
				first, last = own, other
			}
			findings = append(findings, Finding{node, Mark{At: last.death.At.Time, Why: TwoOwners, Message: fmt.Sprintf(
				"ranks of two owners died here: Run %s: %s; Run %s: %s", first.run, ending.ToldOnNode(&first.death), last.run,
				ending.ToldOnNode(&last.death))}})
		}
	}
	return findings
}
