package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// fail loses a node under a Run that has a spare.
func (s *stage) fail(ctx context.Context) error {
	s.title("7. A node fails: the spare of the Run takes over, and the other ranks go on")
	const run = "rai/torchrun-24"
	for _, command := range []string{"runs cancel -n mm pretrain-128", "runs cancel -n rai sweep-48",
		"runs submit -f manifests/samples/failure/torchrun-24.yaml"} {
		if err := s.kubectl(ctx, command); err != nil {
			return err
		}
	}
	if err := s.await(ctx, []string{run, "Running", "bound"}); err != nil {
		return err
	}
	err := s.tellNow(ctx, run, "Started", "group 0: 32 GPUs in domain D on d1 d2 d3 d4, paid by rai/east-h100")
	if err != nil {
		return err
	}
	if err := s.kubectl(ctx, "taint node d2 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"); err != nil {
		return err
	}
	if err := s.await(ctx, []string{run, "group 0 swapped to spare after node failure"},
		[]string{run, "closed", "NodeFailure"}, []string{run, "closed", "Swap"}); err != nil {
		return err
	}
	err = s.tellNow(ctx, run, "Swapped", "group 0: 24 GPUs in domain D on d1 d3 d4, paid by rai/east-h100")
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	w, err := s.picture(ctx)
	if err != nil {
		return err
	}
	var cordoned []string
	for i := range w.nodes {
		if w.nodes[i].Spec.Unschedulable {
			cordoned = append(cordoned, w.nodes[i].Name)
		}
	}
	return s.check("nodes that take nothing new", []string{"d2"}, cordoned)
}

// grow has a Run start on the only eight GPUs that are free, and be given eight more once others are gone.
func (s *stage) grow(ctx context.Context) error {
	s.title("8. A Run that wants 16 GPUs and can do with 8 starts on 8, and grows when there is room")
	const run = "mm/scale-16"
	for _, next := range []struct {
		command string
		wanted  []string
	}{
		{"runs submit -f manifests/samples/runs/resnet-small.yaml", []string{"rai/resnet-small", "Running", "bound"}},
		{"runs submit -f manifests/samples/elastic/scale-16.yaml", []string{run, "Running", "bound 8 GPUs"}},
		{"runs cancel -n mm finetune-16", []string{run, "16/16"}},
		{"runs new eval-8 -n mm --gpus 8 --owner org:ai:mm", []string{"mm/eval-8", "Running", "bound"}},
		{"runs cancel -n rai resnet-small", []string{"rai/resnet-small", "deleted"}},
		{"runs new probe-8 -n aud --gpus 8 --owner org:ai:aud --checkpoint 30m",
			[]string{"aud/probe-8", "Running", "bound"}},
	} {
		if err := s.kubectl(ctx, next.command); err != nil {
			return err
		}
		if err := s.await(ctx, next.wanted); err != nil {
			return err
		}
	}
	if err := s.tellNow(ctx, run, "Grow", "group 0: 16 GPUs in domain C on c1 c4, paid by mm/east-h100"); err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	_, err := s.picture(ctx)
	return err
}

// threatened are the Runs that may be cut for the one that waits in the last parts.
var threatened = []string{"aud/probe-8", "mm/eval-8", "mm/scale-16"}

// waiter is the Run that waits in the last parts.
const waiter = "rai/vision-16"

// threaten has a Run wait for which there is money and no room: it gets a date, at which others are cut for it.
func (s *stage) threaten(ctx context.Context) error {
	s.title("9. No room, but money: the Run gets a date, and all who may be cut for it are told so, with odds")
	if err := s.kubectl(ctx, "runs submit -f manifests/samples/reservation/3-vision-16.yaml"); err != nil {
		return err
	}
	var told [][]string
	for _, other := range threatened {
		told = append(told, []string{other, "risk of being ended"})
	}
	if err := s.await(ctx, told...); err != nil {
		return err
	}
	for _, command := range []string{"runs plan -n rai vision-16", "runs plan -n mm eval-8"} {
		if err := s.kubectl(ctx, command); err != nil {
			return err
		}
	}
	if s.images == "" {
		return nil
	}
	w, err := s.look(ctx)
	if err != nil {
		return err
	}
	return s.keep(w, s.images)
}

// cut waits for the date.
func (s *stage) cut(ctx context.Context) error {
	s.title("10. The date comes: what is needed is shrunk, drawn by lot and ended, and anybody can check the draw")
	if err := s.await(ctx, []string{waiter, "Running", "bound"}); err != nil {
		return err
	}
	w, err := s.look(ctx)
	if err != nil {
		return err
	}
	phase, held, _ := strings.Cut(w.account(waiter), "\n")
	fmt.Fprintf(s.out, "            %s\n", held)
	held, _, _ = strings.Cut(held, " on ") // on which nodes, the draw has decided
	if err := s.check("Run "+waiter, []string{"Running, Started", "group 0: 16 GPUs in domain C"},
		[]string{phase, held}); err != nil {
		return err
	}
	if err := s.verify(ctx, "rai", "vision-16-r0"); err != nil {
		return err
	}
	if err := s.kubectl(ctx, "runs list -A"); err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	_, err = s.picture(ctx)
	return err
}

// verify shows the record of a draw and has it computed again; only who has been told may be in it.
func (s *stage) verify(ctx context.Context, namespace, name string) error {
	shown, err := s.ask(ctx, "runs explain --verify "+name+" -n "+namespace)
	if err != nil {
		return err
	}
	var verdict []string
	for line := range strings.Lines(shown) {
		if rest, ok := strings.CutPrefix(line, "VERDICT"); ok {
			verdict = append(verdict, strings.TrimSpace(rest))
		}
	}
	if err := s.check("the record of "+name, []string{"valid"}, verdict); err != nil {
		return err
	}
	var record rqv1.Reservation
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &record); err != nil {
		return err
	}
	var untold []string
	for _, cut := range record.Status.Cuts {
		if of := cut.Run.Namespace + "/" + cut.Run.Name; !slices.Contains(threatened, of) {
			untold = append(untold, of)
		}
	}
	return s.check("Runs that were cut and had not been told", nil, untold)
}

// tellNow shows where the groups of a running Run are at present, and checks that and by what it came to be.
func (s *stage) tellNow(ctx context.Context, run, reason string, groups ...string) error {
	w, err := s.look(ctx)
	if err != nil {
		return err
	}
	return s.tell(w, run, append([]string{"Running, " + reason}, groups...))
}
