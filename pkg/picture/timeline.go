package picture

import (
	"cmp"
	"slices"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/outage"
)

// Kind is what a bar on the time axis stands for.
type Kind string

// Kinds of bars.
const (
	// Held is time in which a Run held GPUs.
	Held Kind = "held"
	// Ahead is time in which a running Run is going to hold its GPUs at the longest, by its maxDuration.
	Ahead Kind = "ahead"
	// Reserved is time from which a Run that waits is going to hold GPUs.
	Reserved Kind = "reserved"
	// Window is the time in which an envelope pays.
	Window Kind = "window"
	// Maintenance is time in which a node is out of service by plan.
	Maintenance Kind = "maintenance"
)

// Bar is one stretch of time in one lane.
type Bar struct {
	Lane string `json:"lane"`
	Kind Kind   `json:"kind"`
	// Name is what the bar is about: a Run as NAMESPACE/NAME, an envelope as BUDGET/ENVELOPE, or a node.
	Name string `json:"name"`
	// Owner is whose the Run is.
	Owner string    `json:"owner,omitempty"`
	From  time.Time `json:"from"`
	// To is when it ends, absent when that is not known or never.
	To *time.Time `json:"to,omitempty"`
	// GPUs is the most that are held at a time.
	GPUs int `json:"gpus,omitempty"`
	// Closure is how what was held ended.
	Closure rqv1.ClosureReason `json:"closure,omitempty"`
}

// Lanes says by what the lanes of a time axis are told apart.
type Lanes string

// Values of Lanes.
const (
	ByDomain Lanes = "domain"
	ByOwner  Lanes = "owner"
)

// axis is a time axis that is being drawn.
type axis struct {
	objects  *Objects
	from, to time.Time
	now      time.Time
	by       Lanes
	domains  map[string]string // of nodes
	owners   map[string]string // of Runs
	bars     []Bar
}

// Timeline draws what GPU leases, Reservations, maxDurations, windows and maintenance say about a span of time, ordered
// by lane, beginning and name. What a Run held in one lane without a break is one bar, spares and shards included.
func Timeline(o *Objects, args *config.Args, by Lanes, from, to, now time.Time) []Bar {
	a := &axis{objects: o, from: from, to: to, now: now, by: by, domains: map[string]string{}, owners: map[string]string{},
		bars: []Bar{}}
	for _, node := range o.Nodes {
		a.domains[node.Name] = domainOf(node.Labels, args)
	}
	for _, run := range o.Runs {
		a.owners[run.Namespace+"/"+run.Name] = string(run.Spec.Owner)
	}
	a.addHeld()
	a.addAhead()
	a.addReserved(args)
	a.addWindows()
	a.addMaintenance()
	for i := range a.bars {
		if b := &a.bars[i]; b.Kind != Window && b.Kind != Maintenance {
			b.Owner = a.owners[b.Name]
		}
	}
	a.bars = slices.DeleteFunc(a.bars, func(b Bar) bool { return !b.From.Before(to) || b.To != nil && !b.To.After(from) })
	slices.SortFunc(a.bars, func(x, y Bar) int {
		return cmp.Or(strings.Compare(x.Lane, y.Lane), x.From.Compare(y.From), strings.Compare(x.Name, y.Name),
			strings.Compare(string(x.Kind), string(y.Kind)))
	})
	return a.bars
}

// domainOf names a domain by the values of its levels.
func domainOf(labels map[string]string, args *config.Args) string {
	var values []string
	for _, level := range Levels(args) {
		values = append(values, cmp.Or(labels[level], "?"))
	}
	return strings.Join(values, "/")
}

// laneOf is the lane of what a Run holds on a node.
func (a *axis) laneOf(owner, node string) string {
	if a.by == ByOwner {
		return owner
	}
	return cmp.Or(a.domains[node], "no longer there")
}

// stretch is what one Run held in one lane.
type stretch struct {
	run, lane string
	changes   []change
}

// change is GPUs that are taken or given back.
type change struct {
	at      time.Time
	gpus    int
	closure rqv1.ClosureReason
}

func (a *axis) addHeld() {
	held := map[[2]string]*stretch{}
	for _, lease := range a.objects.Leases {
		if lease.Status.Closed && (lease.Status.Ended == nil || !lease.Status.Ended.After(a.from)) ||
			!lease.Spec.Start.Time.Before(a.to) {
			continue
		}
		run := runOf(lease)
		a.owners[run] = cmp.Or(a.owners[run], string(lease.Spec.Owner))
		for _, slice := range lease.Spec.Slice.Nodes {
			key := [2]string{run, a.laneOf(string(lease.Spec.Owner), slice.Name)}
			if held[key] == nil {
				held[key] = &stretch{run: run, lane: key[1]}
			}
			s := held[key]
			s.changes = append(s.changes, change{at: lease.Spec.Start.Time, gpus: int(slice.GPUs)})
			if lease.Status.Closed {
				s.changes = append(s.changes, change{at: lease.Status.Ended.Time, gpus: -int(slice.GPUs),
					closure: lease.Status.ClosureReason})
			}
		}
	}
	for _, s := range held {
		a.bars = append(a.bars, s.bars()...)
	}
}

// bars joins what was held without a break.
func (s *stretch) bars() (out []Bar) {
	slices.SortFunc(s.changes, func(x, y change) int { // what is taken comes first, so that a handover is no break
		return cmp.Or(x.at.Compare(y.at), cmp.Compare(y.gpus, x.gpus), strings.Compare(string(x.closure), string(y.closure)))
	})
	holds := 0
	for i, c := range s.changes {
		if holds == 0 {
			out = append(out, Bar{Lane: s.lane, Kind: Held, Name: s.run, From: c.at})
		}
		bar := &out[len(out)-1]
		holds += c.gpus
		if i == len(s.changes)-1 || s.changes[i+1].at.After(c.at) {
			bar.GPUs = max(bar.GPUs, holds)
		}
		if holds == 0 {
			end := c.at
			bar.To, bar.Closure = &end, c.closure
		}
	}
	return out
}

// addAhead goes on with what is held until the Run's maxDuration is over.
func (a *axis) addAhead() {
	ends := map[string]time.Time{}
	for _, run := range a.objects.Runs {
		if end, ok := run.EndsAt(); ok && end.After(a.now) {
			ends[run.Namespace+"/"+run.Name] = end
		}
	}
	for i := range a.bars {
		bar := &a.bars[i]
		if end, ok := ends[bar.Name]; ok && bar.Kind == Held && bar.To == nil {
			a.bars = append(a.bars, Bar{Lane: bar.Lane, Kind: Ahead, Name: bar.Name, From: a.now, To: &end, GPUs: bar.GPUs})
		}
	}
}

func (a *axis) addReserved(args *config.Args) {
	runs := map[rqv1.NamespacedName]*rqv1.Run{}
	for _, run := range a.objects.Runs {
		runs[rqv1.NamespacedName{Namespace: run.Namespace, Name: run.Name}] = run
	}
	for _, r := range a.objects.Reservations {
		if r.Ended() {
			continue
		}
		bar := Bar{Kind: Reserved, Name: r.Spec.RunRef.Namespace + "/" + r.Spec.RunRef.Name, From: r.Spec.EarliestStart.Time}
		if run := runs[r.Spec.RunRef]; run != nil {
			bar.GPUs = int(run.Spec.Resources.TotalGPUs)
			if until := run.Spec.Until(bar.From); !until.IsZero() {
				bar.To = &until
			}
		}
		for _, lane := range a.lanesOf(r, args) {
			bar.Lane = lane
			a.bars = append(a.bars, bar)
		}
	}
}

// lanesOf are the lanes that a Reservation is drawn in: its Run's owner's, or those of the domains that it intends.
func (a *axis) lanesOf(r *rqv1.Reservation, args *config.Args) []string {
	if a.by == ByOwner {
		return []string{cmp.Or(a.owners[r.Spec.RunRef.Namespace+"/"+r.Spec.RunRef.Name], "owner unknown")}
	}
	slice := r.Spec.IntendedSlice
	if slice == nil {
		return []string{"place not known yet"}
	}
	var lanes []string
	for _, node := range slice.Nodes {
		lanes = append(lanes, a.laneOf("", node))
	}
	if len(lanes) == 0 {
		return []string{domainOf(slice.Domain, args)}
	}
	slices.Sort(lanes)
	return slices.Compact(lanes)
}

// addWindows draws when envelopes pay that do not pay always, in the lanes of their owners.
func (a *axis) addWindows() {
	if a.by != ByOwner {
		return
	}
	for _, b := range a.objects.Budgets {
		for i := range b.Spec.Envelopes {
			e := &b.Spec.Envelopes[i]
			if e.Start == nil && e.End == nil {
				continue
			}
			bar := Bar{Lane: string(b.Spec.Owner), Kind: Window, Name: b.Name + "/" + e.Name, From: a.from,
				GPUs: int(e.Concurrency)}
			if e.Start != nil {
				bar.From = e.Start.Time
			}
			if e.End != nil {
				bar.To = &e.End.Time
			}
			a.bars = append(a.bars, bar)
		}
	}
}

func (a *axis) addMaintenance() {
	if a.by != ByDomain {
		return
	}
	for _, node := range a.objects.Nodes {
		w, err := outage.WindowOf(node)
		if err != nil || !w.Announced() {
			continue
		}
		bar := Bar{Lane: a.domains[node.Name], Kind: Maintenance, Name: node.Name, From: w.Start}
		if !w.End.IsZero() {
			bar.To = &w.End
		}
		a.bars = append(a.bars, bar)
	}
}
