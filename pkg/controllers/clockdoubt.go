package controllers

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// A clock that is ahead by more than leap is not believed: what is deleted for its age cannot be had back. One that has
// jumped ahead is believed after doubt, since it may have been behind before; that of a process that begins, once the
// API server has told the same time.
const leap, doubt = time.Minute, 10 * time.Minute

// clockDoubt is whether the clock may be ahead, so that nothing is deleted for its age. Whoever looks at it every now
// and then has a jump be noticed.
type clockDoubt struct {
	clock clock.Clock

	mu     sync.Mutex
	agreed bool      // the clock has been seen not to be ahead of the API server's
	last   time.Time // when it was looked at
	rests  time.Time // until when it is not believed, which has jumped ahead
}

func newClockDoubt(clock clock.Clock) *clockDoubt { return &clockDoubt{clock: clock} }

// look looks at the clock, and reports whether it has been set back since it was looked at before.
func (d *clockDoubt) look() (now time.Time, back bool) {
	now = d.clock.Now().Round(0) // it is set by, and compared with, what objects say
	d.mu.Lock()
	defer d.mu.Unlock()
	back = now.Before(d.last)
	switch {
	case back:
		d.rests = time.Time{}
	case d.leaps(now):
		d.rests = now.Add(doubt)
	}
	d.last = now
	return now, back
}

// doubts reports whether the clock may be ahead.
func (d *clockDoubt) doubts() bool {
	now := d.clock.Now().Round(0)
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.agreed || now.Before(d.rests) || d.leaps(now)
}

// leaps reports whether the clock is further ahead of when it was last looked at than it should be.
func (d *clockDoubt) leaps(now time.Time) bool { return !d.last.IsZero() && now.Sub(d.last) > leap }

// settle has the clock be believed once the API server has told a time that it is not ahead of, until the context ends.
func (d *clockDoubt) settle(ctx context.Context, kube kubernetes.Interface) {
	told := false
	for !d.compare(ctx, kube, &told) && pause(ctx, d.clock, longest) {
	}
}

// compare compares the clock with the API server's, and reports whether it is believed.
func (d *clockDoubt) compare(ctx context.Context, kube kubernetes.Interface, told *bool) bool {
	theirs, err := serverTime(ctx, kube)
	ahead := d.clock.Now().Sub(theirs)
	if err == nil && ahead <= leap {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.agreed = true
		return true
	}
	if !*told && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Nothing is deleted for its age until the clock agrees with the API server's",
			"serverTime", theirs, "clock", d.clock.Now())
		*told = true
	}
	return false
}

// serverTime asks the API server for the time, in whole seconds: it stamps what it would create, also where it does
// not.
func serverTime(ctx context.Context, kube kubernetes.Interface) (time.Time, error) {
	made, err := kube.CoreV1().ConfigMaps(Namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, GenerateName: "jobtree-time-"},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return time.Time{}, err
	}
	return made.CreationTimestamp.Time, nil
}
