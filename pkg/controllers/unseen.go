package controllers

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// unseen are writes that were made and that a cache may not show yet. What is decided on such a cache wants them again:
// they are left out, or an API server that is slow would be asked the more often, the slower it is. A nil one knows of
// none.
type unseen struct {
	clock clock.PassiveClock
	// later has a Run be looked at again after a time.
	later func(run types.NamespacedName, after time.Duration)

	mu sync.Mutex
	// young are those since an instant, and old those of the rememberedFor before it.
	young, old map[madeWrite]bool
	since      time.Time
}

// rememberedFor is for how long a write is remembered at least, and three times that at most: whatever is wrong with a
// cache, it is made again then.
const rememberedFor = 30 * time.Second

// madeWrite is a write to an object as a cache has it in some version, or one that makes an object.
type madeWrite struct {
	what, object, version string
}

// writeTo is a write to an object that a cache has.
func writeTo(what string, o metav1.Object) madeWrite {
	return madeWrite{what, string(o.GetUID()), o.GetResourceVersion()}
}

// making is the write that makes a Run's pod.
func making(pod *corev1.Pod) madeWrite {
	run, _ := rank.RunOf(pod)
	return madeWrite{"create", pod.Namespace + "/" + pod.Name, string(run)}
}

// adopting is the write that gives a pod a rank.
func adopting(a *lifecycle.Adoption) madeWrite {
	return writeTo(fmt.Sprintf("adopt %v %v", a.Labels, a.Annotations), a.Pod)
}

// outliving is the write that says until when a Lease is open whose pod is gone.
func outliving(l *rqv1.Lease) madeWrite { return writeTo("outlive until "+l.Status.EndsBy.String(), l) }

// ends is the write that ends a pod as a decision wants it.
func ends(d *lifecycle.Deletion) madeWrite {
	what := "delete"
	switch {
	case !d.By.IsZero():
		what = "end in place"
	case d.GraceSeconds != nil:
		what = fmt.Sprintf("delete in %d s", *d.GraceSeconds)
	}
	return writeTo(what, d.Pod)
}

// has reports whether a write was made a moment ago.
func (u *unseen) has(w madeWrite) bool {
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.turn()
	return u.young[w] || u.old[w]
}

// note remembers a write that was made.
func (u *unseen) note(w madeWrite) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.turn()
	u.young[w] = true
}

// forget forgets a write that was not made after all, or that need not have been seen.
func (u *unseen) forget(w madeWrite) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.young, w)
	delete(u.old, w)
}

// turn forgets what was remembered for long enough.
func (u *unseen) turn() {
	if now := u.clock.Now(); u.young == nil || now.Sub(u.since) >= rememberedFor || now.Before(u.since) {
		if now.Sub(u.since) < 2*rememberedFor {
			u.old = u.young
		} else {
			u.old = nil
		}
		u.young, u.since = map[madeWrite]bool{}, now
	}
}

// told notes that a cache has news of a pod: it knows by itself whether there is one.
func (u *unseen) told(pod *corev1.Pod) { u.forget(making(pod)) }

// once makes a write unless that was done a moment ago. News of it may come before the answer.
func (u *unseen) once(w madeWrite, write func() error) error {
	if u.has(w) {
		return nil
	}
	u.note(w)
	err := write()
	if err != nil {
		u.forget(w)
	}
	return err
}

// waits reports whether a pod was made a moment ago that is not seen yet. Its Run is looked at once that is no reason
// any more: a pod that has come and gone between two lists is never seen.
func (u *unseen) waits(pod *corev1.Pod) bool {
	is := u.has(making(pod))
	if is && u.later != nil {
		u.later(runOfPod(pod), 3*rememberedFor)
	}
	return is
}
