package book_test

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// What a Run gives back when it ends is there for whoever has a date after that, also where its end was set, or came to
// be sooner, while it ran: no more is kept from others than then, nor is its time paid for any longer.
func TestAnEndThatIsSetLaterFreesMoney(t *testing.T) {
	long := map[string]func(*rqv1.RunSpec){"no end": func(*rqv1.RunSpec) {}, "a later end": lasting(10 * time.Hour)}
	for name, at := range long {
		for _, restarts := range []bool{false, true} {
			t.Run("GPUs, "+name, func(t *testing.T) {
				tellStorm(t, func(s *storm) {
					s.fleet("d0", 4)
					s.setBudget("a", "org:a", 24)
					s.setBudget("b", "org:b", 16)
					s.submit("run0", "org:b", 1, 1, 8)
					s.submit("run1", "org:b", 1, 1, 8)
					s.submitWithSpares("brief", "org:a", 1, 1, 8, 0, at)
					s.work()
					s.during(time.Minute)
					s.submit("run2", "org:a", 2, 1, 8)
					s.work()
					s.during(time.Second)
					s.submit("run3", "org:a", 1, 1, 8)
					s.work()
					s.isRefused("run3", "16 reserved for Run ns/run2")
					s.amend("brief", lasting(2*time.Minute))
					if restarts {
						s.restart()
					}
					s.work()
					s.running("run3", "although brief has ended by the date of run2")
				})
			})
		}
	}
	t.Run("GPU-hours", func(t *testing.T) {
		tellStorm(t, func(s *storm) {
			s.fleet("d0", 2)
			s.setBudget("a", "org:a", 16)
			s.hours("a", 100)
			s.submitWithSpares("brief", "org:a", 1, 1, 8, 0, lasting(10*time.Hour))
			s.work()
			s.during(time.Second)
			s.submitWithSpares("run3", "org:a", 1, 1, 8, 0, lasting(10*time.Hour))
			s.work()
			s.isRefused("run3", "GPU-hours left")
			s.amend("brief", lasting(time.Hour))
			s.work()
			s.running("run3", "although brief spends no more than 8 GPU-hours")
		})
	})
}
