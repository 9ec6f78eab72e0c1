package book_test

import (
	"testing"
	"time"
)

// A date passes while nobody decides, and a process that begins then has others wait for a rank that was lost and whose
// pod others do not make: the Run whose date it was is told nothing else until that is over, and then has its turn.
func TestADateWaitsForRanksThatWereLost(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 3)
		s.setBudget("a", "org:a", 24)
		s.setBudget("b", "org:b", 8)
		s.submitWithSpares("run00", "org:a", 1, 2, 8, 0, ungrouped, theirs, checkpointed)
		s.work()
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		s.submit("run2", "org:b", 1, 1, 8)
		s.work()
		s.waits("run2", "since the fleet is full")
		s.during(reservationLead + 30*time.Second)
		s.controllers.less[slot{s.Runs["run00"].UID, 1}] = true
		s.Lose(s.boundSlots("run00")[1])
		s.disturb()
		s.crash()
		s.work()
		s.checkPromises()
		s.waits("run2", "while a rank that was lost has no place")
		s.during(lossesWithin)
		s.work()
		s.checkPromises()
		s.during(noticePeriod)
		s.work()
		s.running("run2", "although its date has come")
	})
}
