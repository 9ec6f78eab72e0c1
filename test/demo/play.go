package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// started are the sample Runs that start, in the order in which they are submitted, and what becomes of each.
var started = []struct {
	file, run string
	account   []string
}{
	{"runs/finetune-16.yaml", "mm/finetune-16", []string{
		"Running, Started",
		"group 0: 16 GPUs in domain C on c1 c2, paid by mm/east-h100",
	}},
	{"runs/resnet-small.yaml", "rai/resnet-small", []string{
		"Running, Started",
		"group 0: 8 GPUs in domain C on c3, paid by rai/east-h100",
	}},
	{"runs/trainer-64.yaml", "rai/trainer-64", []string{
		"Running, Started",
		"group 0: 32 GPUs in domain A on a1 a2 a3 a4, paid by rai/west-h100",
		"group 1: 32 GPUs in domain B on b1 b2 b3 b4, paid by rai/west-h100",
	}},
}

// waiting are the sample Runs that do not start, and why.
var waiting = []struct{ file, run, reason, words string }{
	{"waiting/ring-40.yaml", "rai/ring-40", "NeverFits", "at most 32 fit"},
	{"waiting/pretrain-128.yaml", "mm/pretrain-128", "InsufficientBudget", "short by 96"},
	{"waiting/sweep-48.yaml", "rai/sweep-48", "InsufficientGPUs", "short by 8"},
}

// play shows the parts of the demo, one after the other.
func (s *stage) play(ctx context.Context) error {
	for _, part := range []func(context.Context) error{s.open, s.fund, s.start, s.pay, s.refuse, s.release, s.fail,
		s.grow, s.threaten, s.cut} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fund shows the empty fleet and says what the teams may hold.
func (s *stage) fund(ctx context.Context) error {
	s.title("1. An empty fleet: a row is a fast-fabric domain, a cell a node, a dot a free GPU")
	if _, err := s.picture(ctx); err != nil {
		return err
	}
	s.title("2. Three teams, and what each may hold")
	if err := s.kubectl(ctx, "apply -f manifests/samples/namespaces.yaml"); err != nil {
		return err
	}
	if err := s.kubectl(ctx, "runs submit -f manifests/samples/budgets.yaml"); err != nil {
		return err
	}
	w, err := s.look(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	for i := range w.budgets {
		for _, e := range w.budgets[i].Spec.Envelopes {
			fmt.Fprintf(s.out, "  Budget %s: %s may hold %d %s GPUs where region is %s\n",
				w.budgets[i].Name, w.budgets[i].Spec.Owner, e.Concurrency, e.Flavor, e.Selector["region"])
		}
	}
	return nil
}

// start submits Runs that fit: each starts with all of its pods at once.
func (s *stage) start(ctx context.Context) error {
	s.title("3. Three Runs start, each with all of its pods at once")
	for _, r := range started {
		if err := s.kubectl(ctx, "runs submit -f manifests/samples/"+r.file); err != nil {
			return err
		}
		if err := s.await(ctx, []string{r.run, "Running", "bound"}); err != nil {
			return err
		}
		w, err := s.look(ctx)
		if err != nil {
			return err
		}
		if err := s.tell(w, r.run, r.account); err != nil {
			return err
		}
	}
	fmt.Fprintln(s.out)
	w, err := s.picture(ctx)
	if err != nil {
		return err
	}
	return s.inReadme(w)
}

// inReadme checks that README.md shows the fleet as it is now.
func (s *stage) inReadme(w *world) error {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		return err
	}
	nodes, err := w.fleet()
	if err != nil {
		return err
	}
	var missing []string
	for line := range strings.Lines(picture.Text(nodes, picture.Style{Letters: &s.letters})) {
		line = strings.TrimPrefix(line, "  ")
		if !strings.Contains(string(readme), "\n"+line) {
			missing = append(missing, line)
		}
	}
	return s.check("what README.md does not show of the fleet", nil, missing)
}

// tell shows where the groups of a Run are, and checks it.
func (s *stage) tell(w *world, run string, want []string) error {
	got := strings.Split(w.account(run), "\n")
	for _, line := range got[1:] {
		fmt.Fprintf(s.out, "            %s\n", line)
	}
	return s.check("Run "+run, want, got)
}

// pay shows the ledger.
func (s *stage) pay(ctx context.Context) error {
	s.title("4. Who pays: one Lease for each pod, here added up by group and envelope")
	w, err := s.look(ctx)
	if err != nil {
		return err
	}
	fmt.Fprint(s.out, w.payers())
	return nil
}

// refuse submits Runs that do not fit: they wait whole, hold nothing, and say why.
func (s *stage) refuse(ctx context.Context) error {
	s.title("5. Three Runs that cannot start: for want of a large enough domain, of budget, and of room")
	for _, r := range waiting {
		if err := s.kubectl(ctx, "runs submit -f manifests/samples/"+r.file); err != nil {
			return err
		}
		if err := s.await(ctx, []string{r.run, "Pending", r.words}); err != nil {
			return err
		}
		w, err := s.look(ctx)
		if err != nil {
			return err
		}
		if err := s.tell(w, r.run, []string{"Pending, " + r.reason}); err != nil {
			return err
		}
	}
	return nil
}

// release deletes a Run, so that one that waits for room starts.
func (s *stage) release(ctx context.Context) error {
	s.title("6. One Run is deleted; the one that waited for room starts, whole, without anybody asking")
	if err := s.kubectl(ctx, "runs cancel -n rai resnet-small"); err != nil {
		return err
	}
	err := s.await(ctx, []string{"rai/resnet-small", "deleted"}, []string{"rai/resnet-small", "closed", "Deleted"},
		[]string{"rai/sweep-48", "Running", "bound"})
	if err != nil {
		return err
	}
	w, err := s.look(ctx)
	if err != nil {
		return err
	}
	if err := s.tell(w, "rai/sweep-48", []string{
		"Running, Started", "group 0: 48 GPUs in domain C+D on c3 c4 d1 d2 d3 d4, paid by rai/east-h100",
	}); err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	if w, err = s.picture(ctx); err != nil {
		return err
	}
	for _, r := range waiting[:2] {
		if err := s.check("Run "+r.run, []string{"Pending, " + r.reason}, strings.Split(w.account(r.run), "\n")); err != nil {
			return err
		}
	}
	return s.remember(w)
}

// remember shows that the ledger outlives the deleted Run.
func (s *stage) remember(w *world) error {
	var got []string
	for i := range w.leases {
		if lease := &w.leases[i]; lease.Status.Closed {
			got = append(got, fmt.Sprintf("%s held %d GPUs on %s; closed: %s", runOf(lease),
				lease.Spec.Slice.Nodes[0].GPUs, lease.Node(), lease.Status.ClosureReason))
		}
	}
	fmt.Fprintf(s.out, "\n  The ledger remembers: %s\n", strings.Join(got, "\n"))
	return s.check("closed Leases", []string{"rai/resnet-small held 8 GPUs on c3; closed: Deleted"}, got)
}
