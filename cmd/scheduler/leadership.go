package main

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// leadership watches this process's lock of the leader election. A process that was stopped for a while, and goes on
// when another leads, would otherwise decide beside it until its own renewal times out.
type leadership struct {
	resourcelock.Interface
	deadline time.Duration
	// renewed is when this process last took or renewed the lock, as time since began; 0 before it has led.
	began   time.Time
	renewed atomic.Int64
	exit    func()
}

// watchLeadership puts a watch over an election's lock and returns whether this process may decide at the moment:
// always, when there is no election.
func watchLeadership(election *leaderelection.LeaderElectionConfig) func() bool {
	if election == nil {
		return func() bool { return true }
	}
	l := &leadership{Interface: election.Lock, deadline: election.RenewDeadline, began: time.Now(), exit: func() {
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}}
	election.Lock = l
	return l.holds
}

// writer names this process among those of its election, as GPU leases tell who has opened them: the namespace and name
// of the election's lock, and its own identity there, which no other process has; empty without an election.
func writer(election *leaderelection.LeaderElectionConfig) string {
	if election == nil {
		return ""
	}
	return election.Lock.Describe() + "/" + election.Lock.Identity()
}

// holds reports whether the lock was renewed so recently that nobody else can have it.
func (l *leadership) holds() bool {
	renewed := l.renewed.Load()
	return renewed > 0 && time.Since(l.began)-time.Duration(renewed) < l.deadline
}

// Get reads the lock, and ends the process if it has led and another holds the lock now.
func (l *leadership) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && l.renewed.Load() > 0 && record.HolderIdentity != "" && record.HolderIdentity != l.Identity() {
		klog.Background().Error(nil, "Another process leads; this one ends", "leader", record.HolderIdentity)
		l.exit()
	}
	return record, raw, err
}

// Create takes the lock for the first time.
func (l *leadership) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update takes or renews the lock.
func (l *leadership) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(record, func() error { return l.Interface.Update(ctx, record) })
}

// note remembers a renewal from when it was asked for: the lock counts from then at the latest.
func (l *leadership) note(record resourcelock.LeaderElectionRecord, write func() error) error {
	asked := time.Since(l.began)
	err := write()
	if err == nil && record.HolderIdentity == l.Identity() {
		l.renewed.Store(max(1, int64(asked)))
	}
	return err
}
