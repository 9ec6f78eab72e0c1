package story

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/audit"
)

// Until waits until a check returns nil. All verbs of seeing that name what is to come wait likewise.
func (s *Teller) Until(what string, check func() error) {
	s.T.Helper()
	if err := s.Cluster.Until(check); err != nil {
		s.Fatalf("%s: %v\n%s", what, err, s.tale())
	}
}

// Never lets so much time pass, in which a check returns nil at any moment.
func (s *Teller) Never(span time.Duration, what string, check func() error) {
	s.T.Helper()
	if err := s.During(span, check); err != nil {
		s.Fatalf("%s: %v\n%s", what, err, s.tale())
	}
}

// Says waits until a Run is in a phase, with a message that holds texts, and returns it.
func (s *Teller) Says(run string, phase rqv1.RunPhase, texts ...string) *rqv1.Run {
	s.T.Helper()
	var is *rqv1.Run
	s.Until(fmt.Sprintf("Run %s is to be %s with %q", run, phase, texts), func() error {
		is = s.World().Run(run)
		return s.said(is, phase, texts)
	})
	return is
}

func (s *Teller) said(is *rqv1.Run, phase rqv1.RunPhase, texts []string) error {
	if is == nil {
		return errors.New("there is none")
	}
	message := s.short(is.Status.Message)
	if is.Status.Phase != phase || slices.ContainsFunc(texts, func(text string) bool {
		return !strings.Contains(message, text)
	}) {
		return fmt.Errorf("it is %s: %s", is.Status.Phase, message)
	}
	return nil
}

// Still is a check, for Never, that a Run is in a phase.
func (s *Teller) Still(run string, phase rqv1.RunPhase, texts ...string) func() error {
	return func() error { return s.said(s.World().Run(run), phase, texts) }
}

// Run returns a Run as it is.
func (s *Teller) Run(name string) *rqv1.Run {
	s.T.Helper()
	run := s.World().Run(name)
	if run == nil {
		s.Fatalf("there is no Run %s", name)
	}
	return run
}

// Pods returns the pods of a Run as they are.
func (s *Teller) Pods(run string) Pods { return s.World().PodsOf(run) }

// On returns the node of a pod of a Run; "" while it has none.
func (s *Teller) On(pod string) string {
	for _, is := range s.World().Pods {
		if is.Name == pod {
			return s.short(is.Spec.NodeName)
		}
	}
	return ""
}

// IsNode returns a node as it is.
func (s *Teller) IsNode(name string) *corev1.Node {
	s.T.Helper()
	for _, node := range s.World().Nodes {
		if node.Name == s.full(name) {
			return node
		}
	}
	s.Fatalf("there is no node %s", name)
	return nil
}

// Deaths asserts which ranks a Run tells of that have died, and by whose doing: "rank 0 on d0-1: Program".
func (s *Teller) Deaths(run string, want ...string) {
	s.T.Helper()
	var got []string
	for _, d := range s.Run(run).Status.Deaths {
		got = append(got, fmt.Sprintf("rank %d on %s: %s", d.Index, s.short(d.Node), d.Cause))
	}
	s.Same("deaths that Run "+run+" tells of", want, got)
}

// Places are GPUs by node. Those of spares are by the node and the word Spare.
type Places map[string]int32

// Holds waits until a Run's open Leases are for such places.
func (s *Teller) Holds(run string, want Places) {
	s.T.Helper()
	s.Until("what Run "+run+" holds", func() error { return differs(want, s.Held(run)) })
}

// Held returns for which places a Run's open Leases are.
func (s *Teller) Held(run string) Places {
	out := Places{}
	for _, l := range s.World().LeasesOf(run) {
		if l.Status.Closed {
			continue
		}
		at := s.short(l.Node())
		if l.Spec.Slice.Role == rqv1.RoleSpare {
			at += " Spare"
		}
		out[at] += int32(l.GPUs())
	}
	return out
}

// Pays waits until a Run's open Leases are paid so: GPUs by owner, envelope, relation and role, such as
// "team/all own Active". The site's own owner is the empty one.
func (s *Teller) Pays(run string, want map[string]int32) {
	s.T.Helper()
	s.Until("who pays for "+run, func() error {
		got := map[string]int32{}
		for _, l := range s.World().LeasesOf(run) {
			if !l.Status.Closed {
				got[fmt.Sprintf("%s %s %s", s.payer(l), l.Spec.Payer.Relation, l.Spec.Slice.Role)] += int32(l.GPUs())
			}
		}
		return differs(want, got)
	})
}

// payer is who pays a Lease: OWNER/ENVELOPE.
func (s *Teller) payer(l *rqv1.Lease) string {
	path := strings.TrimPrefix(strings.TrimPrefix(string(l.Spec.Payer.Owner), string(s.site.Owner)), ":")
	return path + "/" + l.Spec.PaidByEnvelope
}

// Leases counts Leases by why they have closed: REASON, or REASON by CAUSE; those that are open as Open.
type Leases map[string]int

// Open are Leases that have not closed.
const Open = "open"

// Ledger waits until a Run's Leases are so many, for such reasons.
func (s *Teller) Ledger(run string, want Leases) {
	s.T.Helper()
	s.Until("the ledger of Run "+run, func() error { return differs(want, s.Closed(run)) })
}

// Closed returns for which reasons a Run's Leases have closed.
func (s *Teller) Closed(run string) Leases {
	out := Leases{}
	for _, l := range s.World().LeasesOf(run) {
		if !l.Status.Closed {
			out[Open]++
		} else {
			out[string(l.Status.ClosureReason)]++
		}
	}
	return out
}

// Opened waits until a Run's open Leases have begun for such reasons.
func (s *Teller) Opened(run string, want map[rqv1.LeaseReason]int) {
	s.T.Helper()
	s.Until("why the Leases of Run "+run+" were opened", func() error {
		got := map[rqv1.LeaseReason]int{}
		for _, l := range s.World().LeasesOf(run) {
			if !l.Status.Closed {
				got[l.Spec.Reason]++
			}
		}
		return differs(want, got)
	})
}

// Nothing asserts that a Run holds nothing, and never has.
func (s *Teller) Nothing(run string) {
	s.T.Helper()
	if got := s.Closed(run); len(got) > 0 {
		s.Errorf("Run %s has had Leases: %v", run, got)
	}
}

// Remade waits until exactly some of the pods that a Run had have been made anew, and are on nodes.
func (s *Teller) Remade(run string, before Pods, names ...string) {
	s.T.Helper()
	s.Until(fmt.Sprintf("%v are to be made anew", names), func() error {
		var got []string
		now := s.Pods(run)
		for _, name := range sortedKeys(before) {
			switch is := now[name]; {
			case is == nil || is.Spec.NodeName == "":
				return fmt.Errorf("%s is not on a node", name)
			case is.UID != before[name].UID:
				got = append(got, name)
			}
		}
		slices.Sort(names)
		return differs(names, got)
	})
}

// Gone waits until nothing is left of Runs but their Leases, which have closed.
func (s *Teller) Gone(runs ...string) {
	s.T.Helper()
	for _, run := range runs {
		s.Until("Run "+run+" is to be gone", func() error {
			w := s.World()
			if w.Run(run) != nil {
				return errors.New("it is there")
			}
			return s.holds(w, run)
		})
	}
}

// Ended waits until nothing is left of a Run but itself and its Leases.
func (s *Teller) Ended(run string) {
	s.T.Helper()
	s.Until("Run "+run+" is to hold nothing", func() error { return s.holds(s.World(), run) })
}

func (s *Teller) holds(w *World, run string) error {
	for name, pod := range w.PodsOf(run) {
		if pod.DeletionTimestamp != nil || w.Run(run) == nil {
			return fmt.Errorf("pod %s is left", name)
		}
	}
	if held := s.Held(run); len(held) > 0 {
		return fmt.Errorf("it holds %v", held)
	}
	return nil
}

// Sound waits until every invariant holds, by an audit of the objects that excuses nothing.
func (s *Teller) Sound() {
	s.T.Helper()
	rules := audit.RulesOf(s.args)
	rules.Settled = true
	s.Until("the invariants", func() error {
		look := rules.Look(&s.World().World)
		var broken []string
		for _, f := range audit.Standing(look, look) {
			if f.Level == audit.Violation {
				broken = append(broken, fmt.Sprintf("%s: %s", f.Invariant, f.Message))
			}
		}
		if len(broken) > 0 {
			return errors.New(strings.Join(broken, "\n"))
		}
		return nil
	})
}

// Same asserts that two things are alike.
func (s *Teller) Same(what string, want, got any) {
	s.T.Helper()
	if err := differs(want, got); err != nil {
		s.Errorf("%s: %v", what, err)
	}
}

// short is a text with nodes as the story calls them.
func (s *Teller) short(text string) string {
	return regexp.MustCompile(`\b`+regexp.QuoteMeta(s.site.Namespace)+`-`).ReplaceAllString(text, "")
}

// end removes all Runs and waits until they hold nothing.
func (s *Teller) end() {
	s.T.Helper()
	var names []string
	for _, run := range s.World().Runs {
		names = append(names, run.Name)
	}
	for _, name := range names {
		s.Remove(name)
	}
	s.Gone(names...)
	s.Sound()
}

func differs(want, got any) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("-want +got:\n%s", diff)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Refused waits until a Run waits for a reason, told by its condition too, in a message that holds texts. It holds
// nothing.
func (s *Teller) Refused(run, reason string, texts ...string) {
	s.T.Helper()
	s.Until(fmt.Sprintf("Run %s is to be refused by %s with %q", run, reason, texts), func() error {
		is := s.World().Run(run)
		err := s.said(is, rqv1.RunPending, texts)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(is.Status.Conditions, rqv1.ConditionStarted)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != reason || c.Message != is.Status.Message {
			return fmt.Errorf("its condition is %+v", c)
		}
		return nil
	})
	s.Nothing(run)
}

// Width waits until a Run's width is so, and it holds as many GPUs, spares apart.
func (s *Teller) Width(run string, want rqv1.RunWidth) {
	s.T.Helper()
	s.Until("the width of Run "+run, func() error {
		held := int32(0)
		for at, gpus := range s.Held(run) {
			if !strings.HasSuffix(at, " Spare") {
				held += gpus
			}
		}
		if is := s.Run(run).Status.Width; is == nil || *is != want || held != want.Allocated {
			return fmt.Errorf("it holds %d GPUs: %+v", held, is)
		}
		return nil
	})
}
