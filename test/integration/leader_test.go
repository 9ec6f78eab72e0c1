package integration

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// quickElection has a standby notice within seconds that the leader is gone.
var quickElection = map[string]any{"leaderElection": map[string]any{
	"leaseDuration": "5s", "renewDeadline": "4s", "retryPeriod": "500ms",
}}

// pair is two schedulers, of which one leads.
type pair struct {
	*site
	schedulers [2]*controlplane.Process
	// struck is the one that was taken away, nobody while both are to be up.
	struck atomic.Int32
}

// nobody is neither of the two.
const nobody = -1

// TestStandbyTakesOver kills the leader of two schedulers again and again.
func TestStandbyTakesOver(t *testing.T) { takeOver(t, syscall.SIGKILL) }

// TestStandbyTakesOverFromAStoppedLeader stops the leader in its tracks and lets it go on once the standby leads: it
// must decide nothing any more.
func TestStandbyTakesOverFromAStoppedLeader(t *testing.T) { takeOver(t, syscall.SIGSTOP) }

// takeOver has two schedulers and takes the leader away with a signal until the other leads: Runs submitted before,
// meanwhile and after all start, and no pod is decided upon twice.
func takeOver(t *testing.T, signal syscall.Signal) {
	t.Parallel()
	random := seeded(t)
	p := &pair{site: newSite(t, ownCluster(t, quickElection, map[string]any{"gangDeadline": "10s"}), 4, 4, 1000)}
	for i := range p.schedulers {
		p.start(i)
	}
	p.struck.Store(nobody)
	supervised := make(chan struct{})
	go func() { defer close(supervised); p.supervise() }()
	t.Cleanup(func() { <-supervised })
	for round := range full(5, 2) {
		p.submit(fmt.Sprintf("before-%d", round), 40, inPods(2))
		p.submit(fmt.Sprintf("between-%d", round), 24, inPods(1), inGroups(8))
		pause(random, 400*time.Millisecond)
		leader := p.strike(signal)
		p.submit(fmt.Sprintf("during-%d", round), 32, inPods(2), inGroups(8))
		p.awaitLeader(1 - leader)
		if err := p.schedulers[leader].Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		p.submit(fmt.Sprintf("after-%d", round), 16, inPods(1))
		var names []string
		for _, when := range []string{"before", "between", "during", "after"} {
			names = append(names, fmt.Sprintf("%s-%d", when, round))
			p.await(names[len(names)-1], rqv1.RunRunning, "bound")
		}
		p.settled()
		p.awaitEnd(leader)
		p.struck.Store(nobody) // it is started again
		p.awaitUp(leader)
		for _, name := range names {
			p.removeRun(name)
		}
		p.awaitGone(names...)
	}
}

// start starts a scheduler for the first time.
func (p *pair) start(i int) {
	p.t.Helper()
	var err error
	if p.schedulers[i], err = p.StartScheduler(p.t.Context(), fmt.Sprintf("scheduler-%d", i)); err != nil {
		p.t.Fatal(err)
	}
}

// supervise starts a scheduler again that has ended, until the test ends, as the installed Deployment does: where a
// machine is so busy that the leader cannot renew its lease in time, it loses its office and ends, with nobody struck
// or with the other stopped.
func (p *pair) supervise() {
	for again := time.NewTicker(250 * time.Millisecond); ; {
		select {
		case <-p.t.Context().Done():
			again.Stop()
			return
		case <-again.C:
		}
		for i, scheduler := range p.schedulers {
			if int32(i) == p.struck.Load() || scheduler.Running() {
				continue
			}
			if err := scheduler.Start(); err != nil {
				p.t.Error(err)
			}
		}
	}
}

// leader is the scheduler that says that it leads.
func (p *pair) leader() (int, error) {
	const name = "leader_election_master_status"
	for i, scheduler := range p.schedulers {
		if gauges, err := p.counters(p.t.Context(), scheduler, name); err == nil && gauges[name] == 1 {
			return i, nil
		}
	}
	return 0, errors.New("nobody leads")
}

// strike sends the leader a signal and returns which scheduler it was.
func (p *pair) strike(signal syscall.Signal) int {
	p.t.Helper()
	var leader int
	eventually(p.t, "a leader", func() (err error) { leader, err = p.leader(); return err })
	p.struck.Store(int32(leader))
	if err := p.schedulers[leader].Signal(signal); err != nil {
		p.t.Fatal(err)
	}
	return leader
}

// awaitLeader waits until a scheduler leads.
func (p *pair) awaitLeader(want int) {
	p.t.Helper()
	const name = "leader_election_master_status"
	eventually(p.t, "the standby is to lead", func() error {
		gauges, err := p.counters(p.t.Context(), p.schedulers[want], name)
		if err == nil && gauges[name] != 1 {
			err = errors.New("it does not lead")
		}
		return err
	})
}

// awaitUp waits until a scheduler that is started again answers.
func (p *pair) awaitUp(i int) {
	p.t.Helper()
	eventually(p.t, "the old leader is to stand by", func() error {
		_, err := p.counters(p.t.Context(), p.schedulers[i], "leader_election_master_status")
		return err
	})
}

// awaitEnd waits until a scheduler that has lost its office has ended by itself.
func (p *pair) awaitEnd(i int) {
	p.t.Helper()
	eventually(p.t, "the old leader is to end", func() error {
		if p.schedulers[i].Running() {
			return errors.New("it runs")
		}
		return nil
	})
}
