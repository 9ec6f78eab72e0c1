package book_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// settle lets everybody work until nothing changes any more, not even when every deadline has passed.
func (w *world) settle() {
	last, quiet := "", 0
	for range 200 {
		w.round()
		now := w.fingerprint()
		if now != last {
			last, quiet = now, 0
			w.Pass(time.Second)
			continue
		}
		if quiet++; quiet <= 3 {
			w.Pass(gangDeadline + 2*time.Second)
			continue
		}
		for range 3 { // who was woken last is tried, and others get what it leaves
			w.round()
		}
		if w.fingerprint() == now {
			return
		}
	}
	story := ""
	for _, name := range slices.Sorted(maps.Keys(w.Runs)) {
		story += fmt.Sprintf("%s: %s: %v\n%s", name, w.Runs[name].Status.Message, w.Book.Refusal(w.Runs[name].UID),
			w.describe(name))
	}
	w.t.Fatalf("the cluster does not come to rest:\n%s", story)
}

// round lets everybody do their work once.
func (w *world) round() {
	w.control()
	for _, name := range w.Names() {
		w.reconcile(name)
	}
	w.grow()
	w.Book.Fill(w.Now)
	w.Book.Advance(w.Now) // those whose pods were not taken are tried again
	w.Act()
	for _, uid := range w.SortedPods() {
		w.cycle(uid)
	}
	for _, uid := range w.Bindings() {
		w.Bind(uid, sim.Written)
	}
}

func (w *world) fingerprint() string {
	var b strings.Builder
	for _, uid := range w.SortedPods() {
		b.WriteString(string(uid) + w.Pods[uid].Spec.NodeName + string(w.Pods[uid].Status.Phase))
	}
	for _, name := range slices.Sorted(maps.Keys(w.Leases)) {
		b.WriteString(name + strconv.FormatBool(w.Leases[name].Status.Closed))
	}
	b.WriteString(fmt.Sprint(w.Waiting.Len(), len(w.Binding), w.crashes))
	for _, name := range slices.Sorted(maps.Keys(w.Runs)) {
		status := &w.Runs[name].Status
		b.WriteString(string(status.Phase))
		if status.Width != nil { // growth that other rules bar comes to light only when it is tried
			b.WriteString(strconv.Itoa(int(status.Width.Growing)))
		}
	}
	return b.String()
}

// describe tells the state of a Run's pods, for failures.
func (w *world) describe(run string) string {
	var b strings.Builder
	for _, uid := range w.SortedPods() {
		pod := w.Pods[uid]
		if pod.Labels[rqv1.LabelRun] == run {
			_, binds := w.Binding[uid]
			fmt.Fprintf(&b, "%s %s node=%q assigned=%q phase=%q gate=%q waits=%v binds=%v\n", uid, pod.Name, pod.Spec.NodeName,
				w.Book.Assigned(uid), pod.Status.Phase, w.Book.Gate(pod), w.Waiting.Has(uid), binds)
		}
	}
	for _, lease := range w.OpenLeases() {
		fmt.Fprintf(&b, "%s on %s\n", lease.Name, lease.Node())
	}
	return b.String()
}
