// Command records writes random records of lotteries, one JSON object a line: {record, valid}, where valid is what
// jobtree's own check says. Half of them have been changed in one place or in two. Other checks are held against it.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// line is one line of the output.
type line struct {
	Record *rqv1.Reservation `json:"record"`
	Valid  bool              `json:"valid"`
}

func main() {
	n := flag.Int("n", 1000, "how many `records` to write")
	seed := flag.Uint64("seed", 1, "what they follow from")
	flag.Parse()
	r := rand.New(rand.NewPCG(*seed, 0))
	out := json.NewEncoder(os.Stdout)
	for i := range *n {
		record := random(r)
		if i%2 == 1 {
			for range 1 + r.IntN(2) {
				change(r, &record.Status)
			}
		}
		if err := out.Encode(line{record, len(resolver.Verify(record)) == 0}); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
	}
}

// random returns a record that is valid.
func random(r *rand.Rand) *rqv1.Reservation {
	nonce := [32]byte{}
	for i := range nonce {
		nonce[i] = byte(r.IntN(256))
	}
	set := conflictSet(r)
	record := &rqv1.Reservation{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run-r0"},
		Spec: rqv1.ReservationSpec{RunRef: rqv1.NamespacedName{Namespace: "ns", Name: "run"}}}
	s := &record.Status
	s.State, s.ConflictSet, s.Conflicts = rqv1.ReservationReleased, set, resolver.TotalOf(set)
	s.ActivatedAt = ptr.To(metav1.NewMicroTime(time.Date(2026, 3, 1, 12, 0, 0, r.IntN(1e9), time.UTC)))
	s.Lottery = &rqv1.Lottery{Commitment: resolver.Commitment(nonce), ConflictSetDigest: resolver.Digest(set),
		Nonce: hex.EncodeToString(nonce[:]), Odds: "exact"}
	tickets := len(resolver.Tickets(set))
	draw := resolver.NewDraw(nonce, set)
	for range r.IntN(tickets + 1) {
		ticket, _ := draw.Next()
		s.Lottery.Draws = append(s.Lottery.Draws, rqv1.Draw{Owner: ticket.Owner, Run: ticket.Run})
	}
	addCuts(r, s)
	return record
}

// conflictSet returns entries of up to six Runs of up to three owners; each Run has a ticket, and some have more to
// lose.
func conflictSet(r *rand.Rand) (set []rqv1.Conflict) {
	owners := []rqv1.Owner{"org:a", "org:b", "org:b:c"}
	for i := range 1 + r.IntN(6) {
		run := rqv1.NamespacedName{Namespace: []string{"x", "y"}[r.IntN(2)], Name: fmt.Sprintf("run-%d", i)}
		owner := owners[r.IntN(len(owners))]
		priority := ptr.To(int32(r.IntN(3) - 1))
		add := func(action rqv1.CutAction) {
			set = append(set, rqv1.Conflict{Run: run, Owner: owner, Action: action, GPUs: int32(1 + r.IntN(16)),
				Probability: []string{"0", "0.25", "0.5", "1"}[r.IntN(4)], Priority: priority})
		}
		for _, action := range []rqv1.CutAction{rqv1.CutReturn, rqv1.CutDropSpare, rqv1.CutShrink} {
			if r.IntN(4) == 0 {
				add(action)
			}
		}
		add(rqv1.CutLottery)
	}
	return set
}

// addCuts carries a draw out: whoever is drawn ends, or the last one does, or others of its owner pay for it where
// their priority is lower; of who does not end, some lose something else.
func addCuts(r *rand.Rand, s *rqv1.ReservationStatus) {
	ended := map[rqv1.NamespacedName]bool{}
	entry := func(run rqv1.NamespacedName) *rqv1.Conflict {
		i := slices.IndexFunc(s.ConflictSet, func(c rqv1.Conflict) bool {
			return c.Run == run && c.Action == rqv1.CutLottery
		})
		return &s.ConflictSet[i]
	}
	drawn := func(run rqv1.NamespacedName) bool {
		return slices.ContainsFunc(s.Lottery.Draws, func(d rqv1.Draw) bool { return d.Run == run })
	}
	for i := range s.Lottery.Draws {
		d := &s.Lottery.Draws[i]
		last := i == len(s.Lottery.Draws)-1
		for _, c := range s.ConflictSet {
			if c.Action == rqv1.CutLottery && c.Owner == d.Owner && *c.Priority < *entry(d.Run).Priority && !ended[c.Run] &&
				!drawn(c.Run) && len(d.PaidBy) == 0 && r.IntN(2) == 0 {
				d.PaidBy = append(d.PaidBy, c.Run)
				ended[c.Run] = true
			}
		}
		if len(d.PaidBy) == 0 && (last || r.IntN(2) == 0) {
			ended[d.Run] = true
		}
	}
	for _, c := range s.ConflictSet {
		cut := rqv1.Cut{Run: c.Run, UID: "uid", Action: c.Action, GPUs: c.GPUs}
		switch {
		case ended[c.Run] != (c.Action == rqv1.CutLottery) || !ended[c.Run] && r.IntN(2) == 0:
			continue
		case c.Action.Narrows():
			cut.Width = ptr.To(int32(8))
		case c.Action == rqv1.CutDropSpare:
			cut.Spares = []int32{0}
		}
		s.Cuts = append(s.Cuts, cut)
	}
}

// change changes a record in one place.
func change(r *rand.Rand, s *rqv1.ReservationStatus) {
	l := s.Lottery
	flip := func(hexadecimal *string) {
		sum := sha256.Sum256([]byte(*hexadecimal))
		*hexadecimal = hex.EncodeToString(sum[:])
	}
	entry := &s.ConflictSet[r.IntN(len(s.ConflictSet))]
	changes := []func(){
		func() { flip(&l.Commitment) }, func() { flip(&l.ConflictSetDigest) }, func() { flip(&l.Nonce) },
		func() { l.Nonce = "" }, func() { s.ActivatedAt = nil }, func() { l.Draws = nil }, func() { s.Cuts = nil },
		func() { entry.Owner = "ORG:A" }, func() { entry.GPUs++ }, func() { entry.GPUs = 0 },
		func() { entry.Probability = "0.75" }, func() { entry.Probability = "2" }, func() { entry.Priority = nil },
		func() { entry.Run.Name = "other" }, func() { entry.Action = "Other" }, func() { entry.Owner = "" },
		func() { s.ConflictSet = append(s.ConflictSet, *entry) },
		func() { s.Conflicts = &rqv1.ConflictTotal{Total: 1, GPUs: 1} },
		func() { s.ConflictSet = s.ConflictSet[1:] }, func() { l.ConflictSetDigest = resolver.Digest(s.ConflictSet) },
		func() { s.Conflicts = nil }, func() { slices.Reverse(l.Draws) }, func() { slices.Reverse(s.Cuts) },
	}
	if len(l.Draws) > 0 {
		d := &l.Draws[r.IntN(len(l.Draws))]
		changes = append(changes, func() { d.Run = entry.Run }, func() { d.PaidBy = append(d.PaidBy, entry.Run) },
			func() { d.Owner = entry.Owner }, func() { l.Draws = l.Draws[:len(l.Draws)-1] }, func() { d.PaidBy = nil })
	}
	if len(s.Cuts) > 0 {
		c := &s.Cuts[r.IntN(len(s.Cuts))]
		changes = append(changes, func() { c.Run = entry.Run }, func() { c.GPUs++ }, func() { c.Width = ptr.To(int32(4)) },
			func() { c.Spares = []int32{1} }, func() { c.Action = entry.Action }, func() { s.Cuts = append(s.Cuts, *c) },
			func() { s.Cuts = s.Cuts[:len(s.Cuts)-1] })
	}
	if len(s.ConflictSet) > 1 {
		changes[r.IntN(len(changes))]()
	}
}
