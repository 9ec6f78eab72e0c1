package controllers

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// unseen are writes that were made and that a cache may not show yet. What is decided on such a cache wants them again:
// they are left out, or an API server that is slow would be asked the more often, the slower it is. A nil one knows of
// none.
type unseen struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// young are those since an instant, and old those of the rememberedFor before it.
	young, old map[madeWrite]bool
	since      time.Time
}

// rememberedFor is for how long a write is remembered at least, and twice that at most: whatever is wrong with a cache,
// it is made again then.
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
func (u *unseen) told(pod *corev1.Pod) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.young, making(pod))
	delete(u.old, making(pod))
}

// once makes a write unless that was done a moment ago.
func (u *unseen) once(w madeWrite, write func() error) error {
	if u.has(w) {
		return nil
	}
	err := write()
	if err == nil {
		u.note(w)
	}
	return err
}
