package controlplane

import (
	"context"
	"errors"
	"sync"
	"time"
)

// restoring is how long a control plane may take to become as it was.
const restoring = time.Minute

// Lent is what a Pool lends: a control plane with whatever a test has beside it.
type Lent interface {
	Stop()
	// Restore has it be as it was when it was new; it is an error if it is not by the end of the context.
	Restore(ctx context.Context) error
}

// Pool lends control planes to tests that have them for themselves, one after the other: to start one takes longer than
// many a test. They are of two kinds: with the controller of JobSets, and without.
type Pool[T Lent] struct {
	mutex sync.Mutex
	// idle are those that no test has, all those that were ever started.
	idle map[bool][]T
	all  []T
}

// Take returns an idle one, or else one that it starts.
func (p *Pool[T]) Take(jobSets bool, start func() (T, error)) (T, error) {
	p.mutex.Lock()
	if idle := p.idle[jobSets]; len(idle) > 0 {
		one := idle[len(idle)-1]
		p.idle[jobSets] = idle[:len(idle)-1]
		p.mutex.Unlock()
		return one, nil
	}
	p.mutex.Unlock()
	one, err := start()
	if err != nil {
		return one, err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.all = append(p.all, one)
	return one, nil
}

// Give takes one back, without schedulers, when its test has ended. One whose test has failed, or that does not become
// as it was, is stopped: the error says why no other test can have it.
func (p *Pool[T]) Give(one T, jobSets, failed bool) error {
	if failed {
		one.Stop()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), restoring)
	defer cancel()
	if err := one.Restore(ctx); err != nil {
		one.Stop()
		return errors.Join(errors.New("no other test can use this one's control plane"), err)
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.idle == nil {
		p.idle = map[bool][]T{}
	}
	p.idle[jobSets] = append(p.idle[jobSets], one)
	return nil
}

// Stop ends all of them, and calls each with every one.
func (p *Pool[T]) Stop(each func(T)) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, one := range p.all {
		one.Stop()
		each(one)
	}
}
