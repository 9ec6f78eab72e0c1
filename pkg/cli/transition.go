package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// reporter writes one line for each change of a Run that a reader would notice, and one for each batch of GPU leases that
// opened or closed together.
type reporter struct {
	out        io.Writer
	now        func() time.Time
	colours    bool
	namespaces bool // names are preceded by their namespaces
	eachLease  bool // a line for every GPU lease instead of one for a batch

	nameWidth int
	said      map[types.NamespacedName]string
	closed    map[types.UID]bool
	batches   []*batch
}

// batch is a number of GPU leases that tell the same story.
type batch struct {
	key    batchKey
	leases int
	gpus   int32
	nodes  []string
}

type batchKey struct {
	run                           types.NamespacedName
	verb, reason, envelope, payer string
	lease                         string // set when every GPU lease has a line of its own
}

// run reports a Run, unless a reader would see no difference from the last time.
func (r *reporter) run(run *rqv1.Run) {
	desired := run.Spec.Resources.TotalGPUs
	pending := ""
	if width := run.Status.Width; width != nil {
		desired = width.Desired
		if width.Pending != "" {
			pending = " [" + width.Pending + "]"
		}
	}
	phase := string(phaseOf(run))
	width := fmt.Sprintf("%d/%d GPUs", allocated(run), desired)
	tell := func(now time.Time) string {
		notes := pending + noteOf("starts", startOf(run, now)) + noteOf("at risk:", riskOf(run, now))
		return strings.TrimRight(fmt.Sprintf("%s  %-12s%s  %s", r.paint(phase), width, notes, printers.EscapeTerminal(run.Status.Message)), " ")
	}
	name := types.NamespacedName{Namespace: run.Namespace, Name: run.Name}
	timeless := tell(time.Time{}) // a countdown that goes on is no change
	if r.said[name] == timeless {
		return
	}
	if r.said == nil {
		r.said = map[types.NamespacedName]string{}
	}
	r.said[name] = timeless
	story := tell(r.now())
	r.flush()
	r.line(name, story)
}

// noteOf is a note in brackets, or nothing when there is nothing to note.
func noteOf(what, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(" [%s %s]", what, text)
}

// gone reports that a Run was deleted.
func (r *reporter) gone(run *rqv1.Run) {
	name := types.NamespacedName{Namespace: run.Namespace, Name: run.Name}
	delete(r.said, name)
	r.flush()
	r.line(name, "deleted")
}

// lease adds a GPU lease that opened or closed to its batch. A closed one is counted once.
func (r *reporter) lease(lease *rqv1.Lease) {
	key := batchKey{
		run:      types.NamespacedName{Namespace: lease.Spec.RunRef.Namespace, Name: lease.Spec.RunRef.Name},
		verb:     "opened",
		reason:   string(lease.Spec.Reason),
		envelope: lease.Spec.Payer.Budget + "/" + lease.Spec.PaidByEnvelope,
		payer:    string(lease.Spec.Payer.Owner),
	}
	if lease.Status.Closed {
		if r.closed[lease.UID] {
			return
		}
		if r.closed == nil {
			r.closed = map[types.UID]bool{}
		}
		r.closed[lease.UID] = true
		key.verb, key.reason = "closed", string(lease.Status.ClosureReason)
	}
	if r.eachLease {
		key.lease = lease.Name
	}
	b := r.batch(key)
	b.leases++
	b.gpus += gpusOf(lease)
	for _, node := range lease.Spec.Slice.Nodes {
		if !slices.Contains(b.nodes, node.Name) {
			b.nodes = append(b.nodes, node.Name)
		}
	}
}

func (r *reporter) batch(key batchKey) *batch {
	for _, b := range r.batches {
		if b.key == key {
			return b
		}
	}
	r.batches = append(r.batches, &batch{key: key})
	return r.batches[len(r.batches)-1]
}

// flush writes the batches that have been collected.
func (r *reporter) flush() {
	for _, b := range r.batches {
		leases, where := fmt.Sprintf("%d GPU leases", b.leases), fmt.Sprintf("%d nodes", len(b.nodes))
		if b.leases == 1 {
			leases = "a GPU lease"
		}
		if len(b.nodes) == 1 {
			where = b.nodes[0]
		}
		r.line(b.key.run, fmt.Sprintf("%s %s (%s): %d GPUs on %s, paid by %s (%s)",
			b.key.verb, leases, b.key.reason, b.gpus, where, b.key.envelope, b.key.payer))
	}
	r.batches = nil
}

func (r *reporter) line(run types.NamespacedName, story string) {
	name := run.Name
	if r.namespaces {
		name = run.String()
	}
	r.nameWidth = max(r.nameWidth, len(name))
	fmt.Fprintf(r.out, "%s  %-*s  %s\n", r.now().Format(time.TimeOnly), r.nameWidth, name, story)
}

// paint pads a phase and, on a terminal, colours it.
func (r *reporter) paint(phase string) string {
	padded := fmt.Sprintf("%-9s", phase)
	colour := map[string]string{"Pending": "33", "Running": "32", "Completed": "36", "Failed": "31"}[phase]
	if !r.colours || colour == "" {
		return padded
	}
	return "\x1b[" + colour + "m" + padded + "\x1b[0m"
}
