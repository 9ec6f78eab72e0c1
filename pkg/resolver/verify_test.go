package resolver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// published is the record of one activation in a state that has every kind of cut.
func published(t testing.TB) *rqv1.Reservation {
	l := newLot(16, 4)
	bravo, charlie, delta, echo := run("bravo", "two"), run("charlie", "three"), run("delta", "four"), run("echo", "five")
	bravo.Spares = []Spare{{Index: 4, Holds: l.take(4)}, {Index: 5, Holds: l.take(4)}}
	charlie.Steps = []Step{{Width: 8, Holds: l.take(4)}, {Width: 4, Holds: l.take(4)}}
	delta.Rest, delta.Ticket = l.take(8), true
	echo.Rest, echo.Ticket = l.take(12), true
	foxtrot := run("foxtrot", "six")
	foxtrot.Rest, foxtrot.Ticket = l.take(12), true
	w, candidates := &domain{free: l.free, pods: 13, each: 4}, []Candidate{bravo, charlie, delta, echo, foxtrot}
	set, how, _ := Odds(w, candidates)
	plan, ok := Resolve(w, candidates, set, nonce(2))
	if !ok || len(plan.Draws) < 2 || len(plan.Cuts) < 4 {
		t.Fatalf("draws %v and cuts %v; want several", plan.Draws, plan.Cuts)
	}
	return record(set, how, nonce(2), plan)
}

func TestVerifyExample(t *testing.T) {
	if found := Verify(published(t)); len(found) > 0 {
		t.Errorf("a valid record is said to differ: %q", found)
	}
}

func TestVerifySays(t *testing.T) {
	zero := strings.Repeat("0", 64)
	for _, tc := range []struct {
		name   string
		change func(s *rqv1.ReservationStatus)
		want   []string // beginnings
	}{
		{"not activated", func(s *rqv1.ReservationStatus) {
			*s = rqv1.ReservationStatus{State: rqv1.ReservationPending, Lottery: &rqv1.Lottery{Commitment: zero}}
		}, []string{"The Reservation has not been activated: nothing has been drawn or cut."}},
		{"not revealed", func(s *rqv1.ReservationStatus) {
			s.Cuts, s.Lottery.Draws, s.Lottery.Nonce = nil, nil, ""
		}, []string{"The nonce is not revealed yet: the draw cannot be checked."}},
		{"cuts before the nonce", func(s *rqv1.ReservationStatus) {
			s.Lottery.Nonce = ""
		}, []string{"The nonce is not revealed yet", fmt.Sprintf("There are %d draws and %d cuts, although", 2, 4)}},
		{"never fixed", func(s *rqv1.ReservationStatus) { s.ActivatedAt = nil }, []string{"activatedAt is missing"}},
		{"commitment", func(s *rqv1.ReservationStatus) { s.Lottery.Commitment = zero },
			[]string{`commitment is "` + zero + `", but the revealed nonce has the SHA-256 ` + Commitment(nonce(2))}},
		{"nonce in upper case", func(s *rqv1.ReservationStatus) { s.Lottery.Nonce = strings.ToUpper(s.Lottery.Nonce) },
			[]string{`nonce is "`}},
		{"digest", func(s *rqv1.ReservationStatus) { s.Lottery.ConflictSetDigest = zero },
			[]string{`conflictSetDigest is "` + zero}},
		{"not whole", func(s *rqv1.ReservationStatus) { s.Conflicts.Total++ },
			[]string{"The conflict set lists "}},
		{"a draw less", func(s *rqv1.ReservationStatus) { s.Lottery.Draws = s.Lottery.Draws[:1] },
			[]string{"Cut 3 ends ns-echo/five by lottery"}},
		{"the last draw is not cut", func(s *rqv1.ReservationStatus) {
			last := s.Lottery.Draws[1].Run
			s.Cuts = slices.DeleteFunc(s.Cuts, func(c rqv1.Cut) bool { return c.Run == last })
		}, []string{"Draw 2, the last, is ns-"}},
		{"a draw too many", func(s *rqv1.ReservationStatus) {
			s.Lottery.Draws = append(s.Lottery.Draws, s.Lottery.Draws[0], s.Lottery.Draws[0])
		}, []string{"Draw 3 is ns-", "Draw 4 is ns-"}},
		{"draws swapped", func(s *rqv1.ReservationStatus) {
			s.Lottery.Draws[0], s.Lottery.Draws[1] = s.Lottery.Draws[1], s.Lottery.Draws[0]
		}, []string{"Draw 1 is ns-", "Draw 2 is ns-"}},
		{"a cut twice", func(s *rqv1.ReservationStatus) { s.Cuts = append(s.Cuts, s.Cuts[0]) },
			[]string{"Cut 5 repeats DropSpare of ns-bravo/two."}},
		{"a cut that was not published", func(s *rqv1.ReservationStatus) { s.Cuts[0].Run.Name = "other" },
			[]string{"Cut 1 is DropSpare of ns-bravo/other, which the conflict set does not list."}},
		{"more GPUs", func(s *rqv1.ReservationStatus) { s.Cuts[0].GPUs = 9 },
			[]string{"Cut 1 is DropSpare of ns-bravo/two with 9 GPUs, but the conflict set lists 8."}},
		{"a width where none belongs", func(s *rqv1.ReservationStatus) { s.Cuts[0].Width = new(int32) },
			[]string{"Cut 1 is DropSpare of ns-bravo/two: a width"}},
		{"no spares", func(s *rqv1.ReservationStatus) { s.Cuts[0].Spares = nil },
			[]string{"Cut 1 is DropSpare of ns-bravo/two: spares"}},
		{"an end and a shrink", func(s *rqv1.ReservationStatus) {
			c := s.Cuts[1]
			c.Action, c.Width = rqv1.CutLottery, nil
			s.Cuts = append(s.Cuts, c)
		}, []string{
			"Cut 2 is Shrink of ns-charlie/three, which another cut ends",
			"Cut 5 is Lottery of ns-charlie/three, which the conflict set",
			"Cut 5 ends ns-charlie/three by lottery, which was not drawn",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := published(t)
			tc.change(&r.Status)
			got := Verify(r)
			for i := range got {
				if i < len(tc.want) && strings.HasPrefix(got[i], tc.want[i]) {
					got[i] = tc.want[i]
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("sentences (-want +got):\n%s", diff)
			}
		})
	}
}

// TestVerifyFindsTwoTickets: nobody's chance is doubled by listing a Run twice, even if all hashes are made for it.
func TestVerifyFindsTwoTickets(t *testing.T) {
	set := entries(tickets("a/1", "b/1", "b/2"))
	for _, tc := range []struct {
		name   string
		change func() []rqv1.Conflict
		want   string
	}{
		{"twice", func() []rqv1.Conflict { return append(set, set[0]) },
			"Entry 4 of the conflict set repeats Lottery of a/1."},
		{"two lines in one", func() []rqv1.Conflict {
			c := set[0]
			c.Owner = "a a/1 8 0.5\nLottery b"
			return []rqv1.Conflict{c, set[1]}
		}, "Entry 1 of the conflict set is malformed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			changed := tc.change()
			first, _ := NewDraw(nonce(0), changed).Next()
			plan := Plan{Draws: []rqv1.Draw{{Owner: first.Owner, Run: first.Run}},
				Cuts: []rqv1.Cut{{Run: first.Run, Action: rqv1.CutLottery, GPUs: 8}}}
			found := Verify(record(changed, "exact", nonce(0), plan))
			if len(found) != 1 || !strings.HasPrefix(found[0], tc.want) {
				t.Errorf("found %q, want %q", found, tc.want)
			}
		})
	}
}
