package story

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// takeoverStories are of a scheduler that begins after a rank was lost and GPUs became free, which others want as well.
func takeoverStories() (all []Story) {
	losses := map[string]func(s *Teller, node string){
		"deleted-node":   func(s *Teller, node string) { s.RemoveNode(node) },
		"out-of-service": func(s *Teller, node string) { s.Lose(node) },
		"sign":           func(s *Teller, node string) { s.ChangeNode(node, Shows(fellOff, corev1.ConditionTrue)) },
	}
	for name, rival := range map[string]func(s *Teller){
		"start": func(s *Teller) {
			s.Submit("other", 8, InPods(8))
			s.Says("other", rqv1.RunRunning)
			s.Submit("rival", 8, InPods(8))
			s.Says("rival", rqv1.RunPending)
		},
		"growth": func(s *Teller) {
			s.Submit("rival", 8, InPods(8), Elastic(8, 16, 8), Desires(16))
			s.Says("rival", rqv1.RunRunning)
		},
		"shards": func(s *Teller) {
			s.Submit("other", 8, InPods(8))
			s.Says("other", rqv1.RunRunning)
			s.Submit("rival", 8, InPods(8), Opportunistic)
			s.Says("rival", rqv1.RunPending)
		},
	} {
		for how, lose := range losses {
			all = append(all, Story{Name: "after-" + how + "-or-" + name, Alone: "the scheduler is killed",
				Play: func(s *Teller) { lostRankFirst(s, lose, rival) }})
		}
	}
	return append(all,
		Story{Name: "took-over-loss-or-date", Args: soon("10s"), Alone: "the scheduler is killed",
			Play: lostRankBeforeDate},
		Story{Name: "took-over-a-start", Play: startGoesOn},
		Story{Name: "took-over-without-room", Alone: "the scheduler is killed", Play: lossWithoutRoom})
}

// lostRankFirst has a rank be lost while no scheduler is there, and as many GPUs become free as it needs: it has them,
// whoever else waits for them.
func lostRankFirst(s *Teller, lose func(*Teller, string), rival func(*Teller)) {
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 100))
	s.Submit("old", 16, InPods(8))
	s.Says("old", rqv1.RunRunning, "bound 16 GPUs")
	s.Submit("brief", 8, InPods(8))
	s.Says("brief", rqv1.RunRunning)
	rival(s)
	free := s.On("brief-0")
	s.Kill(func() {
		s.Finish("brief")
		lose(s, s.On("old-1"))
	})
	s.Ledger("old", Leases{"NodeFailure": 1, Open: 2})
	s.Holds("old", Places{"d0-0": 8, free: 8})
	s.Says("old", rqv1.RunRunning, "bound 16 GPUs")
}

// lostRankBeforeDate has the date of a Run come at which others go for it, while no scheduler is there: first the rank
// gets what is free, then the Run takes from others what it needs.
func lostRankBeforeDate(s *Teller) {
	s.Nodes("d0", 3)
	s.Fund("", Envelope("all", 100))
	s.Submit("old", 8, InPods(8))
	s.Says("old", rqv1.RunRunning, "bound 8 GPUs")
	for _, name := range []string{"brief", "other"} {
		s.Submit(name, 8, InPods(8), Checkpointed(time.Second))
		s.Says(name, rqv1.RunRunning)
	}
	s.Submit("rival", 8, InPods(8))
	r := s.Promised("rival", rqv1.ReservationPending)
	s.Later(r.Spec.EarliestStart.Sub(s.Now()) - time.Millisecond)
	s.Kill(func() {
		s.Finish("brief")
		s.RemoveNode(s.On("old-0"))
	})
	s.Ledger("old", Leases{"NodeFailure": 1, Open: 1})
	s.Says("old", rqv1.RunRunning, "bound 8 GPUs")
}

// startGoesOn has room come free for a Run that waits, and others behind it wait for less: whoever goes on with its
// start midway gives them none of it.
func startGoesOn(s *Teller) {
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 100))
	s.Submit("brief", 32, InPods(8))
	s.Says("brief", rqv1.RunRunning)
	s.Submit("old", 32, InPods(8))
	s.Says("old", rqv1.RunPending)
	for _, name := range []string{"rival-a", "rival-b"} {
		s.Submit(name, 8, InPods(8))
		s.Says(name, rqv1.RunPending)
	}
	s.Finish("brief")
	s.Says("old", rqv1.RunRunning, "bound 32 GPUs")
	s.Ledger("old", Leases{Open: 4})
	s.Nothing("rival-a")
	s.Nothing("rival-b")
}

// lossWithoutRoom has a rank be lost for which there is no room: its Run ends, and what it held is another's.
func lossWithoutRoom(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 100))
	s.Submit("old", 16, InPods(8))
	s.Says("old", rqv1.RunRunning, "bound 16 GPUs")
	s.Submit("rival", 8, InPods(8))
	s.Says("rival", rqv1.RunPending)
	s.Kill(func() { s.RemoveNode(s.On("old-1")) })
	s.Says("old", rqv1.RunFailed)
	s.Says("rival", rqv1.RunRunning, "bound 8 GPUs")
}
