package book_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// settle lets everybody work until nothing changes any more, not even when every deadline has passed.
func (w *world) settle() {
	last, quiet := "", 0
	for range 200 {
		w.round()
		now := w.fingerprint()
		if now != last {
			last, quiet = now, 0
			w.pass(time.Second)
			continue
		}
		if quiet++; quiet > 3 {
			return
		}
		w.pass(gangDeadline + 2*time.Second)
	}
	w.t.Fatalf("the cluster does not come to rest")
}

// round lets everybody do their work once.
func (w *world) round() {
	for _, name := range w.names() {
		w.reconcile(name)
	}
	w.grow()
	w.book.Fill(w.now)
	w.act()
	for _, uid := range w.sortedPods() {
		w.cycle(uid)
	}
	for _, uid := range slices.Sorted(maps.Keys(w.binding)) {
		w.bind(uid, written)
	}
}

func (w *world) fingerprint() string {
	var b strings.Builder
	for _, uid := range w.sortedPods() {
		b.WriteString(string(uid) + w.pods[uid].Spec.NodeName + string(w.pods[uid].Status.Phase))
	}
	for _, name := range slices.Sorted(maps.Keys(w.leases)) {
		b.WriteString(name + strconv.FormatBool(w.leases[name].Status.Closed))
	}
	b.WriteString(fmt.Sprint(len(w.waiting), len(w.binding), w.crashes))
	for _, name := range slices.Sorted(maps.Keys(w.runs)) {
		b.WriteString(string(w.runs[name].Status.Phase))
	}
	return b.String()
}

// describe tells the state of a Run's pods, for failures.
func (w *world) describe(run string) string {
	var b strings.Builder
	for _, uid := range w.sortedPods() {
		pod := w.pods[uid]
		if pod.Labels[rqv1.LabelRun] == run {
			_, waits := w.waiting[uid]
			_, binds := w.binding[uid]
			fmt.Fprintf(&b, "%s %s node=%q assigned=%q phase=%q gate=%q waits=%v binds=%v\n", uid, pod.Name, pod.Spec.NodeName,
				w.book.Assigned(uid), pod.Status.Phase, w.book.Gate(pod), waits, binds)
		}
	}
	for _, lease := range w.openLeases() {
		fmt.Fprintf(&b, "%s on %s\n", lease.Name, lease.Node())
	}
	return b.String()
}

func (w *world) sortedPods() []types.UID { return slices.Sorted(maps.Keys(w.pods)) }

func (w *world) openLeases() []*rqv1.Lease {
	var out []*rqv1.Lease
	for _, name := range slices.Sorted(maps.Keys(w.leases)) {
		if !w.leases[name].Status.Closed {
			out = append(out, w.leases[name])
		}
	}
	return out
}

// names returns the names of Runs that there are, or of which pods or open Leases are left.
func (w *world) names() []string {
	names := slices.Collect(maps.Keys(w.runs))
	for _, uid := range w.sortedPods() {
		if run := w.pods[uid].Labels[rqv1.LabelRun]; !slices.Contains(names, run) {
			names = append(names, run)
		}
	}
	for _, lease := range w.openLeases() {
		if !slices.Contains(names, lease.Spec.RunRef.Name) {
			names = append(names, lease.Spec.RunRef.Name)
		}
	}
	slices.Sort(names)
	return names
}
