package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// sizeStories are of Runs that leave the size of their pods to the fleet (R14).
func sizeStories() []Story {
	return []Story{
		{Name: "pods-of-the-size-that-fits", Play: sizeThatFits},
		{Name: "pods-of-the-nodes-that-came", Play: nodesThatCame},
		{Name: "first-pod-fixes-the-size", Play: firstPodFixesTheSize},
		{Name: "pods-that-nodes-have-outgrown", Play: outgrown},
		{Name: "one-spare-is-one-pod", Play: oneSpareIsOnePod},
		{Name: "spares-do-not-choose-the-size", Play: sparesDoNotChoose},
		{Name: "pods-of-the-size-that-is-paid", Play: sizePaidThere},
		{Name: "pods-of-a-size-that-two-pay", Play: sizePaidByTwo},
		{Name: "pods-of-a-size-that-is-paid-later", Play: sizePaidLater},
		{Name: "pods-of-a-size-that-a-window-pays", Play: sizePaidInItsWindow},
		{Name: "pods-of-a-size-whose-hours-are-spent", Play: sizeNoLongerPaid},
		{Name: "pods-of-a-size-whose-hours-go-by", Long: "ten minutes of its Budget are to be spent",
			Play: sizePaidNoLongerMeanwhile},
	}
}

// sized waits until a Run's pods have a size, and nothing that it holds another.
func (s *Teller) sized(run string, gpus, spares int32) {
	s.T.Helper()
	s.Until(fmt.Sprintf("pods of %s are to have %d GPUs", run, gpus), func() error {
		status := s.Run(run).Status
		if status.GPUsPerPod != gpus || status.SparesPerGroup != spares {
			return fmt.Errorf("they have %d, and %d stand by in a group", status.GPUsPerPod, status.SparesPerGroup)
		}
		return nil
	})
	for _, lease := range s.World().LeasesOf(run) {
		if !lease.Status.Closed {
			s.Same("GPUs of Lease "+lease.Name, gpus, lease.GPUs())
		}
	}
}

// sizeThatFits has four nodes of 4 GPUs and one of 8, which is cordoned at first: a Run of all of them has pods of 4,
// also once it is the turn of another that could have had pods of 8.
func sizeThatFits(s *Teller) {
	s.Nodes("d0", 4, WithGPUs(4))
	s.Node("large", "d0", Cordoned)
	s.Fund("", Envelope("all", 64))
	s.Submit("fits", 24)
	s.Says("fits", rqv1.RunPending, "short by 8")
	s.ChangeNode("large", GivenBack)
	s.Says("fits", rqv1.RunRunning, "bound 24 GPUs")
	s.sized("fits", 4, 0)
	s.Submit("next", 8)
	s.Says("next", rqv1.RunPending, "short by 8")
	s.Finish("fits")
	s.Says("next", rqv1.RunRunning, "bound 8 GPUs")
	s.sized("next", 8, 0)
}

// nodesThatCame submits a Run to a fleet that is too small for it, and nodes of another size come: it has no pod yet,
// and gets pods for them.
func nodesThatCame(s *Teller) {
	s.Nodes("d0", 1, WithGPUs(4))
	s.Fund("", Envelope("all", 64))
	s.Submit("wide", 16)
	s.Refused("wide", "NeverFits", "at most 4 fit")
	s.Nodes("d1", 2)
	s.Says("wide", rqv1.RunRunning, "bound 16 GPUs")
	s.sized("wide", 8, 0)
}

// firstPodFixesTheSize loses a node of 8 under a Run with pods of 8 where there are nodes of 4: the rank waits for one
// of 8.
func firstPodFixesTheSize(s *Teller) {
	s.Nodes("d0", 2)
	s.Nodes("d1", 4, WithGPUs(4))
	s.Fund("", Envelope("all", 64))
	s.Submit("train", 16, Restarts(3, nil))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.sized("train", 8, 0)
	s.Node("d0-2", "d0")
	s.Lose(s.On("train-1"))
	s.Until("its rank is to be on the new node", func() error {
		if on := s.On("train-1"); on != "d0-2" {
			return fmt.Errorf("it is on %q", on)
		}
		return nil
	})
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.sized("train", 8, 0)
}

// outgrown has a Run wait with a pod of 8 GPUs while one of the two nodes that could take its pods is exchanged for
// smaller ones: the pod goes, and the Run starts in smaller ones.
func outgrown(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 64))
	s.Submit("first", 8)
	s.Says("first", rqv1.RunRunning, "bound 8 GPUs")
	s.Submit("wide", 16)
	s.Says("wide", rqv1.RunPending, "short by 8")
	s.sized("wide", 8, 0)
	idle := "d0-0"
	if s.On("first-0") == idle {
		idle = "d0-1"
	}
	s.RemoveNode(idle)
	s.Nodes("d1", 4, WithGPUs(4))
	s.Says("wide", rqv1.RunRunning, "bound 16 GPUs")
	s.sized("wide", 4, 0)
}

// oneSpareIsOnePod asks for 128 GPUs in groups of 32 with one spare a group: pods fill nodes all the same, a spare is a
// pod, and it replaces a node.
func oneSpareIsOnePod(s *Teller) {
	for d := range 4 {
		s.Nodes(fmt.Sprint("d", d), 5)
	}
	s.Fund("", Envelope("all", 400))
	s.Submit("spared", 128, InGroups(32), Spares(1))
	s.Says("spared", rqv1.RunRunning, "bound 128 GPUs")
	s.sized("spared", 8, 8)
	s.Same("ranks and spares", 20, len(s.Pods("spared")))
	s.Submit("more", 64, InGroups(32))
	r := s.Promised("more", rqv1.ReservationPending, "cluster short by 64 GPUs in scope: 64 ")
	s.Same("what would help", []string{"Drop spares in scope (32 GPUs)", "Run fair lottery if deficit remains (48 GPUs)"},
		r.Status.Forecast.Remedies)
	s.Same("what its Run lacks there", int32(64), s.Run("more").Status.Refusal.DeficitGPUs)
	s.Submit("also", 32, InGroups(32), Spares(1))
	s.Says("also", rqv1.RunPending, "short by 40")
	s.sized("also", 8, 8)
	s.Submit("asks", 32, InGroups(32), Spares(1), Suspended)
	s.forecast("asks", func(f *rqv1.RunForecast) bool {
		return slices.ContainsFunc(f.Remarks, func(text string) bool {
			return strings.HasPrefix(text, "a spare replaces a whole pod, here of 8 GPUs: spares of 1 are rounded up to 8")
		})
	})
	lost := s.On("spared-0")
	domain, _, _ := strings.Cut(lost, "-")
	spare := ""
	for name, pod := range s.Pods("spared") {
		if on := s.On(name); pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare) && strings.HasPrefix(on, domain+"-") {
			spare = on
		}
	}
	s.Lose(lost)
	s.Until("the spare's node is to be the rank's", func() error {
		if on := s.On("spared-0"); on != spare {
			return fmt.Errorf("it is on %q, not %q", on, spare)
		}
		return nil
	})
	s.Says("spared", rqv1.RunRunning, "group 0 swapped to spare")
	s.Ledger("spared", Leases{Open: 19, "NodeFailure": 1, "Swap": 1})
}

// sparesDoNotChoose asks for 128 GPUs in groups of 32 with one spare a group, where the ranks are paid for in pods that
// fill nodes and such spares are not: a fixed Run waits, and says that it would not without spares; a malleable one has
// fewer groups, in pods that fill nodes.
func sparesDoNotChoose(s *Teller) {
	for d := range 4 {
		s.Nodes(fmt.Sprint("d", d), 5)
	}
	s.Fund("team", Envelope("own", 144))
	s.Submit("fixed", 128, s.By("team"), InGroups(32), Spares(1))
	s.Refused("fixed", "InsufficientBudget", "short by 16 of 160 GPUs", "; without spares it would be paid for")
	s.Remove("fixed")
	s.Gone("fixed")
	s.Submit("train", 128, s.By("team"), InGroups(32), Spares(1), Elastic(96, 160, 32))
	s.Says("train", rqv1.RunRunning, "bound 96 GPUs")
	s.sized("train", 8, 8)
	lost := s.On("train-0")
	s.Lose(lost)
	s.Says("train", rqv1.RunRunning, "group 0 swapped to spare")
	s.Ledger("train", Leases{Open: 14, "NodeFailure": 1, "Swap": 1})
}

// sizePaidThere has a team that is paid for on small nodes alone, where there are large ones as well: its Run has pods
// that these take, also once another pays for pods of 8 elsewhere.
func sizePaidThere(s *Teller) {
	s.Nodes("large", 2, Labelled("pool", "large"))
	s.Nodes("small", 4, WithGPUs(4), Labelled("pool", "small"))
	s.Fund("team", Envelope("small", 16, In("pool", "small")))
	s.Submit("wide", 16, s.By("team"))
	s.Says("wide", rqv1.RunRunning, "bound 16 GPUs")
	s.sized("wide", 4, 0)
	s.Fund("other", Envelope("anywhere", 16))
	s.Submit("large", 16, s.By("other"))
	s.Says("large", rqv1.RunRunning, "bound 16 GPUs")
	s.sized("large", 8, 0)
}

// sizePaidByTwo has a Run that two pay for, its owner for 12 GPUs and a sponsor for 4: a pod is paid for by one of
// them.
func sizePaidByTwo(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("team", Envelope("own", 12))
	s.Fund("lender", Envelope("lent", 4, s.Lends(0, "team")))
	s.Submit("both", 16, s.By("team"), s.From("lender"))
	s.Says("both", rqv1.RunRunning, "bound 16 GPUs")
	s.sized("both", 4, 0)
	s.Funded("both", 12, s.Pay("lender", 4, "sponsor"))
}

// sizePaidLater has Runs that wait until Budgets are edited: one has no pod, and gets such as are paid for then;
// another has one of a size that is paid for nowhere, and gets others.
func sizePaidLater(s *Teller) {
	s.Nodes("large", 2, Labelled("pool", "large"))
	s.Nodes("small", 8, WithGPUs(4), Labelled("pool", "small"))
	s.Fund("team", Envelope("own", 12))
	s.Submit("split", 16, s.By("team"), s.From("lender"))
	s.Refused("split", "InsufficientBudget", "short by")
	s.Fund("lender", Envelope("lent", 4, s.Lends(0, "team")))
	s.Says("split", rqv1.RunRunning, "bound 16 GPUs")
	s.sized("split", 4, 0)

	s.Fund("other", Envelope("all", 16, In("pool", "none")))
	s.Submit("moved", 16, s.By("other"))
	s.Says("moved", rqv1.RunPending, "short by 16")
	s.EditBudget("other", func(b *rqv1.Budget) { b.Spec.Envelopes[0].Selector["pool"] = "small" })
	s.Says("moved", rqv1.RunRunning, "bound 16 GPUs")
	s.sized("moved", 4, 0)
}

// sizePaidInItsWindow has a Run that is paid for on small nodes alone, once a window has opened: it is promised a start
// then, and starts.
func sizePaidInItsWindow(s *Teller) {
	s.Nodes("large", 2, Labelled("pool", "large"))
	s.Nodes("small", 4, WithGPUs(4), Labelled("pool", "small"))
	e := Envelope("later", 16, In("pool", "small"))
	e.Start = s.In(time.Minute)
	s.Fund("team", e)
	s.Submit("waits", 16, s.By("team"))
	s.Refused("waits", "WindowClosed", "its window opens at")
	r := s.Promised("waits", rqv1.ReservationPending)
	s.Same("the start that is promised", e.Start.Add(10*time.Second).UTC(), r.Spec.EarliestStart.UTC())
	s.Says("waits", rqv1.RunRunning, "bound 16 GPUs")
	s.sized("waits", 4, 0)
}

// largeOrSmall makes two large nodes and four that are half as large, and has a team be paid for on either: on the
// large ones, which one Run fills, for so many GPU-hours.
func (s *Teller) largeOrSmall(hours int64) {
	s.Nodes("large", 2, WithGPUs(256), Labelled("pool", "large"))
	s.Nodes("small", 4, WithGPUs(128), Labelled("pool", "small"))
	s.Fund("team", Envelope("large", 512, In("pool", "large"), Hours(hours)), Envelope("small", 512, In("pool", "small")))
}

// sizeNoLongerPaid has a Run wait for large nodes while another spends so many of the GPU-hours that are paid there
// that too few are left: it gets pods of the nodes on which it is paid for.
func sizeNoLongerPaid(s *Teller) {
	s.largeOrSmall(5)
	s.Submit("first", 512, s.By("team"), Lasts(20*time.Second)) // 2.8 GPU-hours
	s.Says("first", rqv1.RunRunning, "bound 512 GPUs")
	s.sized("first", 256, 0)
	s.Submit("waits", 512, s.By("team"), Lasts(20*time.Second))
	s.Says("waits", rqv1.RunPending, "short by")
	s.Says("waits", rqv1.RunRunning, "bound 512 GPUs")
	s.sized("waits", 128, 0)
}

// sizePaidNoLongerMeanwhile is the same where the other Run has no end.
func sizePaidNoLongerMeanwhile(s *Teller) {
	s.largeOrSmall(600)
	s.Submit("first", 512, s.By("team"))
	s.Says("first", rqv1.RunRunning, "bound 512 GPUs")
	s.Submit("waits", 512, s.By("team"))
	s.Says("waits", rqv1.RunPending, "short by")
	s.Later(11 * time.Minute)
	s.Says("waits", rqv1.RunRunning, "bound 512 GPUs")
	s.sized("waits", 128, 0)
}
