package book

import "time"

// earliest is the earliest of some instants; zero when there are none.
type earliest struct{ at time.Time }

// by adds an instant.
func (e *earliest) by(at time.Time) {
	if e.at.IsZero() || at.Before(e.at) {
		e.at = at
	}
}

// sweepPeriod is the least time between two looks at who could grow, shrink or be filled in.
const sweepPeriod = time.Second

// promisePeriod is the least time between two promises that are worked out again, and forecastShare which part of all
// time that may take of a processor, at most.
const (
	promisePeriod = 50 * time.Millisecond
	forecastShare = 4
)

// nextPromise returns from when on the next promise may be worked out.
func (p *pace) nextPromise(now time.Time) time.Time {
	return after(p.refreshed, max(promisePeriod, forecastShare*p.took), now)
}

// after returns when a period is over that began at an instant; now if that has not come yet, as when the clock was put
// back.
func after(last time.Time, period time.Duration, now time.Time) time.Time {
	if last.After(now) {
		return now
	}
	return last.Add(period)
}

// earlier returns the earlier of two instants by what the clock showed, which may have been set back between them.
func earlier(x, y time.Time) time.Time {
	if x.Round(0).Before(y.Round(0)) {
		return x
	}
	return y
}

// pace is when what is done every now and then was last done.
type pace struct {
	swept, refreshed time.Time
	took             time.Duration // the last promise that was worked out
	windows          time.Time     // up to which the windows of budgets have been seen to open and close
}
