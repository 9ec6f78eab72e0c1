package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// sum is what a reader adds up from all that he was told.
type sum struct{ opened, closed, followed, repaid int }

func (s *sum) hear(told []Happening) {
	for i := range told {
		switch h := &told[i]; h.Verb {
		case hasOpened:
			s.opened += h.Leases
			if h.Reason == string(rqv1.ReasonRepaid) {
				s.repaid += h.Leases
			}
		case hasClosed:
			s.closed += h.Leases
		case hasMoved:
			s.opened += h.Leases
			if h.After != "" { // the GPU lease before, whose node was lost: told here, or before if it was seen then
				s.followed += h.Leases
			}
		}
	}
}

// exchange has two ranks exchange payers, and what they had be seen late, as long as it is open too, or not at all. It
// returns the GPU leases by which they go on.
func exchange(t *rapid.T, one, other rqv1.Lease, at time.Time, see func(rqv1.Lease)) (rqv1.Lease, rqv1.Lease) {
	x := rank.Exchanged(&one, &other, at)
	x.Now[0].UID, x.Now[1].UID = types.UID(x.Now[0].Name), types.UID(x.Now[1].Name)
	seen := []rqv1.Lease{*x.Now[1], one, other}
	for _, l := range x.Closed() {
		seen = append(seen, *l)
	}
	if rapid.Bool().Draw(t, "a watch begins anew") {
		seen = seen[:1]
	}
	see(*x.Now[0])
	for _, l := range seen {
		see(l)
	}
	return *x.Now[0], *x.Now[1]
}

// Whoever adds up all that a tracker tells of the GPU leases of a Run knows how many have opened and closed, and so
// how many are open: each is told once, alone or with others, in whatever order it is seen and however often.
func TestEachLeaseIsToldOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := clitest.RunOf("big", 64, 0, clitest.Runs(64))
		each, tracker, heard := rapid.Bool().Draw(t, "each"), &Tracker{}, &sum{}
		last := map[int]rqv1.Lease{} // by rank
		opened, closed, repaid := 0, 0, 0
		see := func(l rqv1.Lease) {
			tracker.Saw(&l)
			if rapid.Bool().Draw(t, "again") {
				again := l
				tracker.Saw(&again)
			}
			if rapid.IntRange(0, 2).Draw(t, "told") == 0 {
				heard.hear(tracker.Take(each))
			}
		}
		for i := range rapid.IntRange(1, 30).Draw(t, "events") {
			index := rapid.IntRange(0, 5).Draw(t, "rank")
			before, had := last[index]
			if other, paid := last[(index+1)%6]; had && paid && rapid.IntRange(0, 3).Draw(t, "exchange payers") == 0 {
				at := clitest.Noon.Add(time.Duration(i+1) * time.Minute)
				last[index], last[(index+1)%6] = exchange(t, before, other, at, see)
				opened += 2
				repaid += 2
				continue
			}
			opens := func(reason rqv1.LeaseReason) rqv1.Lease {
				l := clitest.As(clitest.LeaseOf(&run, fmt.Sprint("l", i), int32(index/2), fmt.Sprint("n", i%3)),
					rqv1.RoleActive, index)
				opened++
				return clitest.Since(l, time.Duration(i)*time.Minute, reason)
			}
			closes := func(reason rqv1.ClosureReason) rqv1.Lease {
				closed++
				return clitest.Closed(before, time.Duration(i)*time.Minute, reason)
			}
			switch {
			case !had:
				last[index] = opens(rqv1.ReasonStart)
				see(last[index])
			case rapid.Bool().Draw(t, "ends"):
				see(closes(rqv1.ClosedCompleted))
				delete(last, index)
			case rapid.Bool().Draw(t, "moves before it is closed"):
				last[index] = opens(rqv1.ReasonSwap)
				see(last[index])
				see(closes(rqv1.ClosedNodeFailure))
			default:
				see(closes(rqv1.ClosedNodeFailure))
				last[index] = opens(rqv1.ReasonSwap)
				see(last[index])
			}
		}
		heard.hear(tracker.Take(each))
		if heard.repaid != repaid {
			t.Fatalf("%d opened since somebody else pays; told: %+v", repaid, heard)
		}
		if heard.opened != opened || heard.closed > closed || closed > heard.closed+heard.followed {
			t.Fatalf("%d opened and %d closed; told: %+v", opened, closed, heard)
		}
		if count := tracker.Tally(run.UID); count.Active != len(last) || tracker.Tally(types.UID("another")) != (Tally{}) {
			t.Fatalf("%+v are open, want %d", count, len(last))
		}
		if more := tracker.Take(each); len(more) > 0 {
			t.Fatalf("told again: %+v", more)
		}
	})
}

// Numbers of ranks are all there, once and in order, or they are counted.
func TestNumbersAreAllTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfNDistinct(rapid.Int32Range(0, 40), 1, 20, rapid.ID).Draw(t, "numbers")
		slices.Sort(numbers)
		text := Numbered("rank", numbers)
		if text == fmt.Sprintf("%d ranks", len(numbers)) {
			return
		}
		_, list, _ := strings.Cut(text, " ")
		var got []int32
		for _, part := range strings.Split(list, ", ") {
			var from, to int32
			if n, _ := fmt.Sscanf(part, "%d-%d", &from, &to); n < 2 {
				to = from
			}
			for i := from; i <= to; i++ {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, numbers) {
			t.Fatalf("%v are told as %q", numbers, text)
		}
	})
}

// A date that is to come is counted down to, and never said to have passed before it has; one that has passed is now.
func TestCountdowns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left := time.Duration(rapid.Int64Range(-int64(400*24*time.Hour), int64(400*24*time.Hour)).Draw(t, "left"))
		text := Countdown(clitest.After(left), clitest.Noon)
		seconds := CountdownSeconds(clitest.After(left), clitest.Noon)
		if (text == "now") != (left < time.Second) || *seconds < 0 || (*seconds == 0) != (left < time.Second) {
			t.Fatalf("%s is %q and %d seconds", left, text, *seconds)
		}
		is, err := time.ParseDuration(strings.TrimPrefix(text, "in "))
		off := (is - time.Duration(*seconds)*time.Second).Abs()
		if err == nil && (off > time.Minute/2 || off > 0 && left < exactly) && left < 3*time.Hour {
			t.Fatalf("%q and %d seconds", text, *seconds)
		}
	})
}

// Which nodes are named never depends on how many there are, and none is left out unsaid.
func TestNodesAreNamedOrCounted(t *testing.T) {
	for n := range 12 {
		var nodes []string
		for i := range n {
			nodes = append(nodes, fmt.Sprintf("n%d", i))
		}
		for _, wide := range []bool{false, true} {
			text, named, more := NodesInWords(nodes, wide), 0, 0
			for _, node := range nodes {
				if slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }), node) {
					named++
				}
			}
			if _, rest, found := strings.Cut(text, " and "); found {
				fmt.Sscanf(rest, "%d more nodes", &more)
			}
			if named+more != n || wide && named != n {
				t.Errorf("%d nodes are told as %q", n, text)
			}
		}
	}
}
