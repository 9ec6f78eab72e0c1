package story

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/audit"
)

// Cluster is where a story is told. What it is given are objects as users write them; what goes wrong it returns, or
// ends the test.
type Cluster interface {
	// Site is what the story has for itself.
	Site() Site
	// Now is the cluster's time.
	Now() time.Time
	// World is what the API shows of the site.
	World() *World
	// Said is all that a Run has said since the story began: its messages, and changes of its width to come, without
	// repeating itself.
	Said(run string) []string
	// Create makes objects. It returns once nodes among them are ready.
	Create(objects ...client.Object) error
	// Change reads an object, has it changed and writes it, its status too; again when somebody else has written it
	// meanwhile. Change may be called several times.
	Change(object client.Object, change func()) error
	// Delete deletes an object; with a grace period of 0, whatever its kubelet has to say.
	Delete(object client.Object, options ...client.DeleteOption) error
	// Evict asks that a pod be evicted, as kubectl drain does.
	Evict(pod string) error
	// Kill ends the scheduler, whatever it is about to do, and begins another, once something has happened meanwhile.
	Kill(meanwhile ...func())
	// Hold has the API server refuse to bind pods, until it is told that it no longer is to.
	Hold(is bool)
	// Until lets time pass until a check returns nil, and returns its last answer if it never does.
	Until(check func() error) error
	// During lets so much time pass, and returns the first answer of a check that is an error.
	During(span time.Duration, check func() error) error
}

// Site is what one story has for itself of a cluster.
type Site struct {
	Namespace string
	// Flavor is the GPU type of its nodes, and Owner owns all its money.
	Flavor string
	Owner  rqv1.Owner
}

// World is what the API shows of one site: each kind in the order of names, Leases in the order in which they began.
type World struct {
	audit.World
	Events []Event
}

// Event is what has been told of an object.
type Event struct {
	Kind, Name, Reason, Note string
	Count                    int32
}

// Sort puts all kinds in order.
func (w *World) Sort() {
	byName(w.Nodes)
	byName(w.Pods)
	byName(w.Runs)
	byName(w.Budgets)
	slices.SortStableFunc(w.Reservations, func(a, b *rqv1.Reservation) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	byName(w.Leases)
	slices.SortStableFunc(w.Leases, func(a, b *rqv1.Lease) int {
		return a.Spec.Start.Compare(b.Spec.Start.Time)
	})
}

func byName[T client.Object](objects []T) {
	slices.SortFunc(objects, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
}

// Run returns the Run of a name; nil if there is none.
func (w *World) Run(name string) *rqv1.Run {
	for _, run := range w.Runs {
		if run.Name == name {
			return run
		}
	}
	return nil
}

// PodsOf returns the pods of a Run.
func (w *World) PodsOf(run string) Pods {
	out := Pods{}
	for _, pod := range w.Pods {
		if pod.Labels[rqv1.LabelRun] == run {
			out[pod.Name] = pod
		}
	}
	return out
}

// LeasesOf returns the Leases of a Run, closed ones too, in the order in which they began.
func (w *World) LeasesOf(run string) []*rqv1.Lease {
	return slices.DeleteFunc(slices.Clone(w.Leases), func(l *rqv1.Lease) bool { return l.Spec.RunRef.Name != run })
}

// Saying is what a Run says, for Said; empty before it runs.
func Saying(run *rqv1.Run) string {
	if run.Status.Phase != rqv1.RunRunning {
		return ""
	}
	line := run.Status.Message
	if run.Status.Width != nil && run.Status.Width.Pending != "" {
		line += ", " + run.Status.Width.Pending
	}
	return line
}

// Pods are the pods of a Run by name: ranks are RUN-0, RUN-1, ..., and spares RUN-s0, RUN-s1, ....
type Pods map[string]*corev1.Pod
