package book_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// opening has run2 of org:a, which has no pods, be promised 16 GPUs for when org:a begins to pay for 16, and the window
// open.
func (s *storm) opening() {
	s.fleet("d0", 3)
	s.setBudget("a", "org:a", 16)
	s.edit("a", func(e *rqv1.Envelope) { e.Start = &metav1.Time{Time: s.Now.Add(time.Hour)} })
	s.submit("run2", "org:a", 2, 1, 8)
	s.work()
	s.during(time.Second)
	if s.Book.Prospect(s.Runs["run2"].UID).Promise == nil {
		s.t.Fatalf("run2 has no date\n%s", s.story())
	}
	s.during(time.Hour - time.Second)
	s.Book.Due(s.Now)
	s.reconcile("run2")
}

// tried has a Run's pod come and be tried before anything else happens.
func (s *storm) tried(run string) {
	s.submit(run, "org:a", 1, 1, 8)
	s.reconcile(run)
	for _, uid := range s.SortedPods() {
		if s.Pods[uid].Labels[rqv1.LabelRun] == run {
			s.cycle(uid)
		}
	}
}

// For whom a window opens its money is kept until its pods have come, for as long as that takes them at most.
func TestAWindowOpensForWhomItIsPromised(t *testing.T) {
	t.Run("whose pods come later", func(t *testing.T) {
		tellStorm(t, func(s *storm) {
			s.opening()
			s.tried("run3")
			s.work()
			s.running("run2", "although its date has come")
		})
	})
	t.Run("whose pods never come", func(t *testing.T) {
		tellStorm(t, func(s *storm) {
			s.Denies = map[string]string{"run2-0": "it violates PodSecurity"}
			s.opening()
			s.tried("run3")
			s.passes(time.Minute)
			s.running("run3", "although run2 has no pods")
		})
	})
}

// A Run whose leader is gone, and is not taken again, keeps no money from others.
func TestALeaderThatIsDeniedKeepsNoMoney(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.datedRun()
		s.submit("run3", "org:a", 1, 1, 8)
		s.work()
		s.isRefused("run3", reserved)
		s.Denies = map[string]string{"run2-0": "it violates PodSecurity"}
		s.DeletePod(s.pod("run2-0"))
		s.work()
		s.running("run3", "although run2 cannot have its pods")
	})
}

// A group that waits, and is to have more pods than there are, keeps no money from others until these have come.
func TestAGroupThatIsIncompleteKeepsNoMoney(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 3)
		s.setBudget("a", "org:a", 16)
		s.setBudget("b", "org:b", 16)
		s.submit("run0", "org:b", 2, 1, 8)
		s.work()
		s.during(time.Minute)
		s.submitWithSpares("run2", "org:a", 2, 1, 8, 0, theirs)
		s.work()
		s.submit("run3", "org:a", 1, 1, 8)
		s.work()
		s.isRefused("run3", "16 reserved for Run ns/run2")
		s.controllers.less[slot{s.Runs["run2"].UID, 2}] = true
		s.resizeTo("run2", 3)
		s.work()
		s.running("run3", "although pods of run2 are still to be made")
	})
}

// Money that is kept for a Run which goes for another is no news each time that is found: here everybody waits for
// nodes that are paid for, and some of the money is kept.
func TestWhoGoesForAnotherIsNoNewsTwice(t *testing.T) {
	tellStorm(t, func(s *storm) {
		for _, name := range []string{"n0", "n1", "m0", "m1"} {
			s.addNode(name, "d"+name[:1])
			s.label(name, name[:1])
		}
		s.payOn("a", "org:a", 64, "n")
		for i := range 4 {
			s.submit(fmt.Sprintf("run%d", i), "org:a", 1, 2, 8)
			s.work()
			s.during(10 * time.Second)
		}
		if p := s.Book.Prospect(s.Runs["run3"].UID).Promise; p == nil {
			s.t.Fatalf("run3 has no date\n%s", s.story())
		}
	})
}

// Whoever was refused for money that is kept for a Run has it as soon as that one says that it ends before others have
// their dates.
func TestADatedRunThatSaysWhenItEndsKeepsLess(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.Book.DrawsBy("None")
		s.fleet("d0", 2)
		s.fleet("d1", 1)
		s.label("d1-n00", "x")
		s.setBudget("a", "org:a", 24)
		s.setBudget("b", "org:b", 24)
		s.submitWithSpares("run0", "org:b", 1, 2, 8, 0, lasting(10*time.Minute))
		s.work()
		s.submitWithSpares("run1", "org:b", 1, 1, 8, 0, lasting(40*time.Minute))
		s.work()
		s.submit("run2", "org:a", 1, 2, 8)
		s.work()
		s.during(time.Second)
		s.submitWithSpares("run3", "org:a", 1, 1, 8, 0, func(r *rqv1.RunSpec) {
			patient(1)(r)
			r.Template.Spec.NodeSelector = map[string]string{"pool": "x"}
			r.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		})
		s.work()
		s.during(time.Second)
		s.addNode("n9", "d9")
		s.submit("run4", "org:a", 1, 1, 8)
		s.work()
		s.isRefused("run4", "24 reserved for Run ns/run2 and 1 more")
		s.amend("run2", lasting(20*time.Minute))
		s.work()
		s.running("run4", "although run2 has ended when run3 starts")
	})
}

// A Run that takes the place of another of its owner has the money that was kept for that one.
func TestMoneyIsKeptByPlace(t *testing.T) {
	tellStorm(t, func(s *storm) {
		class := func(name string) func(*rqv1.RunSpec) {
			return func(r *rqv1.RunSpec) { r.PriorityClassName = name }
		}
		s.Book.DrawsBy("None")
		s.Book.SetPriorityClass("high", 1)
		s.fleet("d0", 3)
		s.setBudget("a", "org:a", 16)
		s.setBudget("b", "org:b", 16)
		s.submit("run0", "org:b", 1, 1, 8)
		s.submitWithSpares("run1", "org:b", 1, 1, 8, 0, lasting(10*time.Minute))
		s.work()
		s.during(time.Minute)
		s.submitWithSpares("run2", "org:a", 2, 1, 8, 0, class("low"))
		s.work()
		s.during(time.Second)
		s.submitWithSpares("run3", "org:a", 1, 1, 8, 0, class("high"))
		s.work()
		s.isRefused("run3", "16 reserved for Run ns/run2")
		s.Book.SetPriorityClass("high", 1000)
		s.work()
		s.running("run3", "although it comes before run2 by now")
	})
}
