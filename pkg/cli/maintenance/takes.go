package maintenance

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/outage"
)

// mostRuns is how many Runs are named that are on nodes which go out of service.
const mostRuns = 10

// tenant is a Run on nodes that go out of service.
type tenant struct {
	name string
	gpus int32
	// until is when it ends by its maxDuration; zero for a Run without one.
	until time.Time
}

// takes prints what an announcement takes out of use: how many GPUs, for whom and from when. What cannot be read is
// said to be so: the announcement stands all the same.
func takes(ctx context.Context, out io.Writer, c client.Client, nodes []corev1.Node, w outage.Window, now time.Time) {
	args, guessed, err := world.SchedulerArgs(ctx, c)
	if err != nil {
		fmt.Fprintf(out, "Not read: what this takes out of use: %v\n", err)
		return
	}
	if guessed != "" {
		fmt.Fprintf(out, "Not read: %s\n", guessed)
	}
	gpus := 0
	for i := range nodes {
		gpus += int(args.GPUResource.Sum(nodes[i].Status.Allocatable))
	}
	say := func(format string, values ...any) {
		fmt.Fprintln(out, session.LocalTimes(fmt.Sprintf(format, values...), now))
	}
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	if !w.Start.After(now) {
		say("%d GPUs are out of use from now on, for all Runs.", gpus)
	} else {
		say("%d GPUs are out of use for Runs that may still run at %s:", gpus, at(w.Start))
		say("  from now on if they declare neither a checkpoint nor spares;")
		say("  from %s or sooner if they do: they start there if they would wait else.",
			at(w.LeaveFrom(args.NoticePeriod.Duration, 0)))
	}
	tenants, err := tenantsOf(ctx, c, nodes)
	if err != nil {
		say("Not read: which Runs are there now: %v", err)
		return
	}
	tellTenants(say, tenants, w, args)
}

// tellTenants says which Runs are on the nodes, and what becomes of them.
func tellTenants(say func(string, ...any), tenants []tenant, w outage.Window, args *config.Args) {
	var stay, leave []string
	for _, t := range tenants {
		named := fmt.Sprintf("%s (%d GPUs)", t.name, t.gpus)
		if w.Shuts(w.Start, t.until) {
			leave = append(leave, named)
		} else {
			stay = append(stay, named)
		}
	}
	named := func(runs []string) string {
		more := ""
		if n := len(runs) - mostRuns; n > 0 {
			runs, more = runs[:mostRuns], fmt.Sprintf(" and %d more", n)
		}
		return strings.Join(runs, ", ") + more
	}
	if len(leave) > 0 {
		say("Who is there leaves by %s if there is room elsewhere: Runs %s.",
			w.LeaveBy(args.NoticePeriod.Duration).UTC().Format(time.RFC3339), named(leave))
	}
	if len(stay) > 0 {
		say("Who ends before it starts stays: Runs %s.", named(stay))
	}
	if len(tenants) == 0 {
		say("No Run is there now.")
	}
}

// tenantsOf returns the Runs that hold GPUs on nodes, by name.
func tenantsOf(ctx context.Context, c client.Client, nodes []corev1.Node) ([]tenant, error) {
	var list rqv1.LeaseList
	if err := c.List(ctx, &list, session.LeasesOpen); err != nil {
		return nil, err
	}
	on, byName := map[string]bool{}, map[string]*tenant{}
	for i := range nodes {
		on[nodes[i].Name] = true
	}
	for i := range list.Items {
		l := &list.Items[i]
		if !on[l.Node()] {
			continue
		}
		name := l.Spec.RunRef.Namespace + "/" + l.Spec.RunRef.Name
		t := byName[name]
		if t == nil {
			t = &tenant{name: name}
			byName[name] = t
		}
		t.gpus += l.GPUs()
		if l.Spec.Until != nil {
			t.until = l.Spec.Until.Time
		}
	}
	var out []tenant
	for _, t := range byName {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(x, y tenant) int { return cmp.Compare(x.name, y.name) })
	return out, nil
}
