package book_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// endsIn has the kubelet of a pod that has been told to go say that its containers have ended, and everybody do their
// work before the pod is gone.
func (s *storm) endsIn(uid types.UID, phase corev1.PodPhase) {
	s.EndPod(uid, phase)
	s.Ends.Delete(uid)
	s.work()
	s.DeletePod(uid)
	s.work()
}

// A kubelet says that the containers of a pod have ended before it lets go of it, so that its Lease closes first. The
// room of a requeued Run is kept all the same.
func TestTheRoomOfAPodIsKeptThatHasEndedAsItWasTold(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded} {
		t.Run(string(phase), func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.requeuedSlowly()
				for _, uid := range s.Ends.Keys() {
					s.endsIn(uid, phase)
				}
				s.during(10 * time.Second)
				s.work()
				s.waits("run1", "in the room of a Run that was requeued")
				s.addNode("n9", "d0")
				s.work()
				s.running("run0", "although a node has come beside its room")
			})
		})
	}
}

// So is that of a rank that somebody deletes, for the pod that is made in its place: younger Runs wait for room.
func TestTheRoomOfARankIsKeptThatSomebodyDeletes(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded} {
		t.Run(string(phase), func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.fleet("d0", 2)
				s.setBudget("a", "org:a", 16)
				s.setBudget("b", "org:b", 16)
				s.submitWithSpares("run0", "org:a", 1, 2, 8, 0, patient(20))
				s.work()
				s.during(time.Minute)
				s.submit("run1", "org:b", 1, 1, 8)
				s.work()
				s.TerminateWithin(s.pod("run0-0"), nil)
				s.disturb()
				s.work()
				s.endsIn(s.pod("run0-0"), phase)
				s.during(time.Second)
				s.work()
				s.running("run0", "although the room of its rank is its own")
				s.waits("run1", "in the room of a rank")
			})
		})
	}
}

// Two ranks are evicted, and the status has room to tell of one. A process that begins once their containers have ended
// takes neither for deleted by its user.
func TestWhoBeginsMeanwhileKnowsWhoWasEvicted(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.Rules.MostDeaths = 1
		s.Boot(nil)
		s.fleet("d0", 5)
		s.setBudget("a", "org:a", 24)
		s.submitWithSpares("run0", "org:a", 1, 3, 8, 0, checkpointed, patient(20))
		s.work()
		s.during(time.Second)
		evicted := []types.UID{s.pod("run0-0"), s.pod("run0-1")}
		for _, uid := range evicted {
			s.EvictByAPI(uid)
		}
		s.disturb()
		s.work()
		for _, uid := range evicted {
			s.EndPod(uid, corev1.PodSucceeded)
		}
		s.restart()
		s.work()
		s.checkCauses()
	})
}
