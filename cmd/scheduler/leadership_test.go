package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is an election's lock in memory.
type lock struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
	fail   error
}

func (l *lock) Identity() string { return "me" }

func (l *lock) Describe() string { return "ns/election" }

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &l.record, nil, l.fail
}

func (l *lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.fail == nil {
		l.record = record
	}
	return l.fail
}

func TestLeadership(t *testing.T) {
	const deadline = time.Minute
	inner := &lock{}
	election := &leaderelection.LeaderElectionConfig{Lock: inner, RenewDeadline: deadline}
	holds := watchLeadership(election)
	exited := false
	election.Lock.(*leadership).exit = func() { exited = true }
	if got := writer(election); got != "ns/election/me" {
		t.Errorf("its GPU leases are signed by %q", got)
	}
	ctx := context.Background()
	get := func() bool { exited = false; _, _, _ = election.Lock.Get(ctx); return exited }

	inner.record.HolderIdentity = "other"
	if holds() || get() {
		t.Fatalf("a process that has not led decides, or ends because another leads")
	}
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	if err := election.Lock.Update(ctx, mine); err != nil || !holds() || get() {
		t.Fatalf("the leader does not decide: %v", err)
	}
	stopped := election.Lock.(*leadership)
	stopped.began = stopped.began.Add(-2 * deadline) // as if the process had been stopped for so long
	if holds() {
		t.Fatalf("a leader whose renewal is overdue decides")
	}
	inner.fail = errors.New("away")
	if err := election.Lock.Update(ctx, mine); err == nil || holds() || get() {
		t.Fatalf("a renewal that failed counts, or a failed read ends the process")
	}
	inner.fail, inner.record.HolderIdentity = nil, "other"
	if !get() {
		t.Fatalf("a process that has led goes on although another leads")
	}
}

func TestNoElection(t *testing.T) {
	if !watchLeadership(nil)() {
		t.Fatalf("without an election the process does not decide")
	}
	if got := writer(nil); got != "" {
		t.Errorf("without an election its GPU leases are signed by %q", got)
	}
}
