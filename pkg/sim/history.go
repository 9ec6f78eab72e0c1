package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

const (
	// reckoned is how often it is worked out how much each Run is beyond its payer's limit.
	reckoned = 30 * time.Second
	// backoff is how long after a failure a Run is looked at again.
	backoff = time.Second
	// rounds is how often everybody may find something more to do at one instant.
	rounds = 1000
)

// Job is a Run that comes at a time, and whose ranks run for so long and succeed.
type Job struct {
	At    time.Time
	Run   *rqv1.Run
	Works time.Duration
}

// Event is what somebody does to the cluster at a time.
type Event struct {
	At time.Time
	Do func(*Cluster)
}

// Submit makes a Run now, as the API server does.
func (c *Cluster) Submit(run *rqv1.Run) {
	run.Namespace, run.UID, run.Generation = Namespace, c.UID(), 1
	run.CreationTimestamp = metav1.NewTime(c.Now.Truncate(time.Second))
	run.Status = rqv1.RunStatus{Phase: rqv1.RunPending, Message: lifecycle.Waiting}
	c.SetRun(run)
}

// Play goes through a history, from one instant at which something happens to the next, until all Runs have ended.
// When the process dies by a planned fault another begins. It returns an error when Runs have not ended by the end.
func (c *Cluster) Play(jobs []Job, events []Event, end time.Time) error {
	p := &player{Cluster: c, jobs: map[string]*Job{}, comes: newAgenda[string](), over: newAgenda[string]()}
	p.events = slices.SortedStableFunc(slices.Values(events), func(x, y Event) int { return x.At.Compare(y.At) })
	for i := range jobs {
		p.jobs[jobs[i].Run.Name] = &jobs[i]
		p.comes.Set(jobs[i].Run.Name, jobs[i].At)
	}
	stored := c.Stored
	defer func() { c.Stored = stored }()
	c.Stored = func(next *rqv1.Run) {
		if stored != nil {
			stored(next)
		}
		p.follow(next)
	}
	for c.Now.Before(end) {
		var err error
		if p.Step(func() { err = p.now() }) {
			p.Crash(nil)
			continue
		}
		if err != nil {
			return err
		}
		if p.left == 0 && p.comes.Len() == 0 {
			return nil
		}
		p.goOn()
	}
	return fmt.Errorf("%d Runs have not ended by %s", p.left+p.comes.Len(), end)
}

// player has a cluster go through a history.
type player struct {
	*Cluster
	jobs   map[string]*Job
	events []Event // to come, in order
	// comes is when Runs are submitted, and over when the ranks of those that run succeed.
	comes, over *Agenda[string]
	left        int // Runs that are there and have not ended
}

// now has everything happen that happens at this instant.
func (p *player) now() error {
	for len(p.events) > 0 && !p.events[0].At.After(p.Now) {
		p.events[0].Do(p.Cluster)
		p.events = p.events[1:]
	}
	for _, name := range p.comes.Due(p.Now) {
		p.left++
		p.Submit(p.jobs[name].Run)
	}
	for _, name := range p.over.Due(p.Now) {
		p.succeed(name)
	}
	return p.Tick()
}

// follow notes what a Run's status says: when it is over, or that it runs no more.
func (p *player) follow(next *rqv1.Run) {
	was := p.Runs[next.Name]
	switch job := p.jobs[next.Name]; {
	case job == nil || was.Status.Phase == next.Status.Phase:
	case next.Status.Phase == rqv1.RunRunning:
		p.over.Set(next.Name, p.Now.Add(job.Works))
	default:
		p.over.Delete(next.Name)
		if next.Ended() && !was.Ended() {
			p.left--
		}
	}
}

// succeed ends those ranks of a Run that run. What has not started by now, as shards may not, has its time yet.
func (p *player) succeed(name string) {
	for _, pod := range p.PodsOf(name) {
		spare := pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare)
		if !spare && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			p.EndPod(pod.UID, corev1.PodSucceeded)
		}
	}
	p.over.Set(name, p.Now.Add(p.jobs[name].Works))
}

// goOn lets time go by until something happens.
func (p *player) goOn() {
	next := p.Next()
	for _, agenda := range []*Agenda[string]{p.comes, p.over} {
		if _, at, ok := agenda.First(); ok && at.Before(next) {
			next = at
		}
	}
	if len(p.events) > 0 && p.events[0].At.Before(next) {
		next = p.events[0].At
	}
	p.Pass(max(1, next.Sub(p.Now)))
}

// Tick has happen at this instant what happens by itself, and lets everybody work until there is nothing left to do.
func (c *Cluster) Tick() error {
	c.EndPods()
	c.Book.Advance(c.Now)
	c.Book.WorkOutNext(c.Now, 0)
	if !c.Now.Before(c.reckons) {
		c.Book.Budgets.RefreshBudgets(c.Now)
		c.reckons = c.Now.Add(reckoned)
	}
	_, err := c.Work()
	return err
}

// Next returns when something happens next by itself, as far as that is known; it may be over.
func (c *Cluster) Next() time.Time {
	next := c.reckons
	sooner := func(at time.Time, ok bool) {
		if ok && at.Before(next) {
			next = at
		}
	}
	for _, agenda := range []*Agenda[string]{c.Retries, c.looks} {
		_, at, ok := agenda.First()
		sooner(at, ok)
	}
	_, at, ok := c.Ends.First()
	sooner(at, ok)
	_, at, ok = c.Waiting.First()
	sooner(at.Add(1), ok)
	sooner(c.Book.Next(c.Now))
	if c.Groups != nil {
		sooner(c.Groups.Next())
	}
	return next
}

// Work lets everybody do their work until there is none at this instant, and reports whether there was any.
func (c *Cluster) Work() (worked bool, err error) {
	for range rounds {
		c.Act()
		looked := c.Groups != nil && c.Groups.Look()
		if !looked && len(c.changed)+len(c.Queue)+len(c.free())+len(c.under) == 0 {
			return worked, nil
		}
		worked = true
		for c.Delivers() {
			c.Deliver()
		}
		for _, name := range slices.Sorted(maps.Keys(c.changed)) {
			if again := c.Now.Add(backoff); c.Reconcile(name) != nil && (!c.looks.Has(name) || again.Before(c.looks.At(name))) {
				c.looks.Set(name, again)
			}
		}
		c.Act()
		for _, uid := range sorted(c.Queue) {
			c.Cycle(uid)
		}
		for _, uid := range c.free() {
			if c.Holds {
				c.Bind(uid, Late) // its Lease is written
			} else {
				c.Bind(uid, Written)
			}
		}
	}
	return worked, fmt.Errorf("the cluster does not come to rest at %s", c.Now)
}

func sorted(uids map[types.UID]bool) []types.UID { return slices.Sorted(maps.Keys(uids)) }
