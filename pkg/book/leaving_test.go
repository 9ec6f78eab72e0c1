package book_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// leave has a pod told to go, and be gone after its grace period; never if that is 0.
func (s *storm) leave(uid types.UID, grace time.Duration) {
	pod := s.Pods[uid].DeepCopy()
	until := metav1.NewTime(s.Now.Add(grace))
	if pod.DeletionTimestamp = &until; grace > 0 {
		s.Ends.Set(uid, until.Time)
	} else {
		s.Ends.Set(uid, s.Now.Add(1000*time.Hour))
	}
	s.SetPod(pod)
}

// foreign is a pod of nobody's Run on a node.
func (w *world) foreign(name, node string, gpus int) types.UID {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: w.UID()},
		Spec: corev1.PodSpec{NodeName: node,
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
				"nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI)}}}}}}
	pod.Status.StartTime = &metav1.Time{Time: w.Now} // its kubelet has taken it
	w.SetPod(pod)
	return pod.UID
}

// crowd has two Runs fill a domain of two nodes, or a Run and a foreign pod, and another Run wait, whose turn comes in
// 20 s.
func (s *storm) crowd(first bool, runtime *rqv1.RunRuntime) {
	s.addNode("n0", "d0")
	s.addNode("n1", "d0")
	s.setBudget("a", "org:a", 64)
	if first {
		grace := int64(60)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, func(r *rqv1.RunSpec) {
			r.Runtime = runtime
			r.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace,
				Containers: []corev1.Container{{Name: "c"}}}}
		})
	} else {
		s.foreign("other", "n0", 8)
	}
	s.submit("run1", "org:a", 1, 1, 8)
	s.work()
	s.during(time.Second)
	s.submit("run2", "org:a", 1, 1, 8)
	s.work()
	s.during(reservationLead - 20*time.Second)
	s.work()
}

// Nobody is cut for a Run whose turn comes while GPUs that would do are on their way out (R19).
func TestNobodyIsCutWhileWhatIsLeavingWouldDo(t *testing.T) {
	for name, test := range map[string]struct {
		runtime *rqv1.RunRuntime
		foreign bool
		happens func(s *storm)
		free    time.Duration
	}{
		"a Run is deleted": {happens: func(s *storm) {
			s.ForgetRun("run0")
			s.leave(s.pod("run0-0"), time.Minute)
		}, free: time.Minute},
		"a Run is deleted, and its pods have not been told yet": {happens: func(s *storm) {
			s.ForgetRun("run0")
		}, free: time.Minute},
		"a Run ends by its maxDuration": {
			runtime: &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: reservationLead - 10*time.Second}},
			happens: func(*storm) {}, free: 70 * time.Second},
		"a foreign pod is deleted": {foreign: true, happens: func(s *storm) { s.leave(s.pod("other"), time.Minute) },
			free: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.crowd(!test.foreign, test.runtime)
				test.happens(s)
				free := s.Now.Add(test.free)
				for range 9 {
					s.work()
					if cuts := s.Book.CutsOf(s.Runs["run1"].UID); len(cuts) > 0 {
						s.t.Fatalf("run1 is cut at %s: %+v\n%s", s.Now, cuts, s.story())
					}
					if p := s.Book.Prospect(s.Runs["run2"].UID).Promise; p == nil || p.Cuts && s.Now.After(free.Add(-40*time.Second)) {
						s.t.Fatalf("at %s run2 is promised %+v\n%s", s.Now, p, s.story())
					} else if !p.Cuts {
						if off := p.At.Sub(free).Abs(); off > time.Second { // the end that is known, or the one that came
							s.t.Fatalf("at %s run2's date is %s, want %s", s.Now, p.At, free)
						}
					}
					s.during(5 * time.Second)
				}
			})
		})
	}
}

// What is still there long after its grace period is nobody's hope any more, and until then a Reservation that waits
// for it is not written over and over.
func TestWhatOverstaysIsNotWaitedFor(t *testing.T) {
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprint(told), func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.crowd(true, nil)
				s.ForgetRun("run0")
				if told {
					s.leave(s.pod("run0-0"), time.Minute)
				} else {
					s.work() // the scheduler tells it
				}
				s.Ends.Set(s.pod("run0-0"), s.Now.Add(1000*time.Hour))
				before := s.writes
				for range 17 {
					s.work()
					if cuts := s.Book.CutsOf(s.Runs["run1"].UID); len(cuts) > 0 {
						s.t.Fatalf("run1 is cut at %s: %+v\n%s", s.Now, cuts, s.story())
					}
					s.during(5 * time.Second)
				}
				if n := s.writes - before; n > 20 {
					s.t.Errorf("run2's Reservation was written %d times in 85 s", n)
				}
				s.during(10 * time.Second)
				s.work()
				if cuts := s.Book.CutsOf(s.Runs["run1"].UID); len(cuts) != 1 {
					s.t.Fatalf("at %s run1 is cut %d times, want once: what run0 has left stays\n%s", s.Now, len(cuts), s.story())
				}
			})
		})
	}
}

// What leaves bit by bit, when a Run's turn has come for which all of it would do, is nobody else's: small Runs do not
// overtake a large one for ever (R18).
func TestSmallRunsDoNotTakeWhatLeavesForALargeOne(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		tellStorm(t, func(s *storm) {
			s.addNode("n0", "d0")
			s.addNode("n1", "d0")
			s.setBudget("a", "org:a", 64)
			s.submit("run0", "org:a", 1, 2, 8)
			s.work()
			s.during(time.Second)
			s.submit("run1", "org:a", 1, 2, 8)
			s.work()
			s.submit("small", "org:a", 1, 1, 8)
			s.during(reservationLead - 5*time.Second)
			s.ForgetRun("run0")
			s.leave(s.pod("run0-0"), 10*time.Second)
			s.leave(s.pod("run0-1"), 60*time.Second)
			for range 12 {
				s.work()
				if s.on("small-0") != "" {
					s.t.Fatalf("at %s small runs\n%s", s.Now, s.story())
				}
				if restarts {
					s.restart()
					s.work()
				}
				s.during(5 * time.Second)
			}
			s.work()
			s.running("run1", "where run0 has left")
			if r := s.Reservations["run1-r0"]; r.Status.ActivatedAt != nil || r.Status.State != rqv1.ReservationReleased {
				s.t.Fatalf("its Reservation is %s: %+v", r.Status.State, r.Status)
			}
		})
	}
}

// Shards stay where a Run is turned down that is to have GPUs which are on their way out, and it is not kept waiting
// for those.
func TestShardsStayWhereWhatIsLeavingDoesNotDo(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.foreign("other", "n0", 4)
		s.sweep("shards", "org:b", 4, 1)
		s.work()
		s.during(time.Second)
		s.Rejects["n0"] = "node(s) had volume node affinity conflict"
		s.submitWithSpares("wants", "org:a", 1, 1, 8, 0, apart)
		s.work()
		s.during(reservationLead - 20*time.Second)
		s.work()
		s.leave(s.pod("other"), time.Minute)
		for range 20 {
			s.work()
			if n := s.shards("shards")["n0"]; n != 4 {
				s.t.Fatalf("%d shards run at %s", n, s.Now)
			}
			s.during(5 * time.Second)
		}
		if s.Asked == 0 {
			s.t.Fatal("nobody was asked")
		}
		clear(s.Rejects)
		s.later(10 * time.Minute)
		s.running("wants", "although its node accepts it")
	})
}
