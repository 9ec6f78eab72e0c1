package book_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The room that is kept for a group which has left its domain is given back when others do not make its pods anew, also
// where a rank of its other group is done and its pod is gone, for which nothing is kept and which nobody waits for.
func TestRoomIsGivenBackOfAGroupThatNeverComes(t *testing.T) {
	for name, done := range map[string]bool{"its other group runs": false, "a rank of the other is done and gone": true} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.slices(3)
				uid, want := s.Runs["run00"].UID, int64(16)
				if done {
					over := s.Slots(uid)[0][0]
					s.controllers.done[slot{uid, 0}] = true
					s.EndPod(over.UID, corev1.PodSucceeded)
					s.work()
					s.DeletePod(over.UID)
					s.work()
					want = 8
				}
				s.controllers.less[slot{uid, 2}] = true
				s.Lose(s.boundSlots("run00")[3])
				s.work() // the pod that runs beside it takes two seconds to end
				s.controllers.less[slot{uid, 3}] = true
				for _, pod := range s.Slots(uid)[3] {
					s.DeletePod(pod.UID)
				}
				s.during(3 * time.Second)
				s.work()
				for range 6 {
					s.during(gangDeadline / 2)
					s.work()
				}
				if held := s.heldGPUs(); held != want {
					s.t.Fatalf("%d GPUs are held, want the %d of the pods that there are\n%s", held, want, s.describe("run00"))
				}
			})
		})
	}
}

// One of its pods hangs that are to leave: the room is given back once that should be long gone (R37), since nobody
// knows when it goes.
func TestRoomIsGivenBackOfAGroupOfWhichAPodHangs(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.slices(3)
		s.setBudget("b", "org:b", 16)
		free := s.freeOf("run00", 3)
		s.Lose(s.boundSlots("run00")[3])
		stuck := s.Slots(s.Runs["run00"].UID)[2][0].UID
		s.work()
		s.hang(stuck)
		s.disturb()
		s.submitWithSpares("run1", "org:b", 1, 2, 8, 0)
		s.until(3 * time.Second)
		s.waits("run1", "although a group moves to the only domain that has room")
		for range 20 {
			s.until(10 * time.Second)
		}
		s.running("run1", "although there is room")
		if is := s.Nodes[s.Pods[s.pod("run1-0")].Spec.NodeName].Labels["fabric.domain"]; is != free {
			s.t.Fatalf("it runs in %s, want %s, to which nobody comes: %s", is, free, s.Runs["run00"].Status.Message)
		}
	})
}
