package watch

import (
	"cmp"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// reporter tells what changes: a line for each change of a Run that a reader would notice, and one for the GPU leases
// that opened or closed alike since the line before. Runs and GPU leases come by two ways; so changes are collected
// for a moment, and told in the order in which the API server made them.
type reporter struct {
	out        io.Writer
	now        func() time.Time
	colours    bool
	namespaces bool // names are preceded by their namespaces
	eachLease  bool // a line for every GPU lease
	countless  bool // GPU leases cannot be read
	// print, if set, is called for programs with a Run as often as it or its GPU leases have changed, in place of all
	// lines.
	print func(*rqv1.Run, sighting) error

	names     session.Names
	nameWidth int
	followed  map[types.NamespacedName]*followed
	queue     []news
}

// followed is a Run, nil until it is seen, what was last said of it, and the GPU leases of the Runs of its name.
type followed struct {
	name   types.NamespacedName
	run    *rqv1.Run
	said   string
	leases view.Tracker
	// touched is true when something has befallen the GPU leases since the last flush.
	touched bool
}

// news is a change that is not told yet. The order of its version is that in which the API server made it.
type news struct {
	version uint64
	tell    func() error
}

// later has a change told by the next flush. A change whose version is not known comes last.
func (r *reporter) later(version string, tell func() error) {
	number, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		number = math.MaxUint64
	}
	r.queue = append(r.queue, news{number, tell})
}

func (r *reporter) follow(namespace, name string) *followed {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if r.followed == nil {
		r.followed = map[types.NamespacedName]*followed{}
	}
	if r.followed[key] == nil {
		r.followed[key] = &followed{name: key}
	}
	return r.followed[key]
}

// know takes note of what people call a Run.
func (r *reporter) know(run *rqv1.Run) {
	if r.names == nil {
		r.names = session.Names{}
	}
	r.names.Add(run)
}

func (r *reporter) followOf(lease *rqv1.Lease) *followed {
	return r.follow(lease.Spec.RunRef.Namespace, lease.Spec.RunRef.Name)
}

// run has a Run as it is now told.
func (r *reporter) run(run *rqv1.Run) {
	r.know(run)
	r.later(run.ResourceVersion, func() error {
		f := r.follow(run.Namespace, run.Name)
		f.run = run
		return r.tell(f)
	})
}

// gone has told that a Run was deleted.
func (r *reporter) gone(run *rqv1.Run, version string) {
	r.later(version, func() error {
		f := r.follow(run.Namespace, run.Name)
		f.run, f.said = nil, ""
		if err := r.tell(f); err != nil || r.print != nil {
			return err
		}
		r.line(f.name, "deleted")
		return nil
	})
}

// lease has a GPU lease told that has opened or closed.
func (r *reporter) lease(lease *rqv1.Lease) {
	r.later(lease.ResourceVersion, func() error {
		f := r.followOf(lease)
		f.touched = true
		f.leases.Saw(lease)
		return nil
	})
}

// begin takes note of the GPU leases that are open before anything is told.
func (r *reporter) begin(open []rqv1.Lease) {
	for i := range open {
		r.followOf(&open[i]).leases.Hold(&open[i])
	}
}

// resume catches up with what is open in a namespace, or in all, as of a version, after changes have been missed: why a
// GPU lease is not open any more is not known.
func (r *reporter) resume(namespace string, open []rqv1.Lease, version string) {
	present := map[types.UID]bool{}
	for i := range open {
		present[open[i].UID] = true
		r.lease(&open[i])
	}
	r.later(version, func() error {
		for _, f := range r.followed {
			if namespace != "" && namespace != f.name.Namespace {
				continue
			}
			f.touched = true
			maps.DeleteFunc(f.leases.Held, func(uid types.UID, _ *rqv1.Lease) bool { return !present[uid] })
		}
		return nil
	})
}

// drop takes note that a GPU lease's object was deleted, which is no news of one that has closed.
func (r *reporter) drop(lease *rqv1.Lease) {
	r.later(lease.ResourceVersion, func() error {
		f := r.followOf(lease)
		f.touched = true
		f.leases.Forget(lease)
		return nil
	})
}

// flush tells the changes that have been collected, and then what has befallen GPU leases after the last one of their
// Run.
func (r *reporter) flush() error {
	slices.SortStableFunc(r.queue, func(a, b news) int { return cmp.Compare(a.version, b.version) })
	queue := r.queue
	r.queue = nil
	for _, n := range queue {
		if err := n.tell(); err != nil {
			return err
		}
	}
	for _, f := range slices.SortedFunc(maps.Values(r.followed), byName) {
		if f.touched {
			f.touched = false
			if err := r.tell(f); err != nil {
				return err
			}
		}
		if f.run == nil && len(f.leases.Held) == 0 {
			delete(r.followed, f.name)
		}
	}
	return nil
}

func byName(a, b *followed) int {
	return cmp.Or(strings.Compare(a.name.Namespace, b.name.Namespace), strings.Compare(a.name.Name, b.name.Name))
}
