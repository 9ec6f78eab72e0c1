package resolver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// nonce is a fixed nonce for each number.
func nonce(n int) [32]byte { return sha256.Sum256(fmt.Appendf(nil, "nonce %d", n)) }

func unhex(t *testing.T, text string) []byte {
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestByHand compares with what sha256sum and `openssl dgst -sha256 -mac HMAC -macopt hexkey:…` print for the same
// input.
func TestByHand(t *testing.T) {
	w, candidates := firstExample()
	set, _, _ := Odds(w, candidates)
	key := unhex(t, "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
	secret := Nonce(key, "5d1a7c52-9f0e-4a53-8a4b-2f1f6f0c9e11")
	d, seed := NewDraw(secret, set), Seed(secret, set)
	got := []string{hex.EncodeToString(secret[:]), Commitment(secret), Digest(set), hex.EncodeToString(seed[:])}
	want := []string{
		"d9c2f6d01a5411699f726703503fca6a730a48a666b712648dc90bd9eac7fb7b",
		"9e66190876067105fa1bebb266e985d9b050562c4f4a72ce70a0d5f5c919efe0",
		"a88a46867bc11e61ec393d809134631a147688b935c4a6bbf2131f8abe7e60f0",
		"26bd80aa2e0524a74e3c4fa337169b224f5ce4b0a8dff3b2130d7acd44ab99f6",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nonce, commitment, digest, seed (-by hand +got):\n%s", diff)
	}
	// The HMAC of 0 starts with a03fd36a8a8cb629, which is odd: org:b, with its only ticket. The HMAC of 1 starts with
	// ad3a5d41d2d122bf, which is odd: the second ticket of org:a. The last ticket takes no HMAC.
	if diff := cmp.Diff([]string{"ns-b/j2", "ns-a/j3", "ns-a/j1"}, all(d)); diff != "" {
		t.Errorf("draws (-by hand +got):\n%s", diff)
	}
	if d.counter != 2 {
		t.Errorf("%d HMACs, want 2", d.counter)
	}
}

// TestNumbersThatWouldBeUnfair has n so large that one number in four is passed over, which never happens with tickets.
func TestNumbersThatWouldBeUnfair(t *testing.T) {
	d := newDraw([32]byte(unhex(t, "26bd80aa2e0524a74e3c4fa337169b224f5ce4b0a8dff3b2130d7acd44ab99f6")), nil)
	got := []int{d.below(3 << 61), d.below(3 << 61), d.below(3 << 61)}
	// By hand: a03f… and ad3a… less 6000000000000000; dced… is not below c000000000000000; 9dec… less 6000000000000000.
	if diff := cmp.Diff([]int{0x403fd36a8a8cb629, 0x4d3a5d41d2d122bf, 0x3dec293ddd4da24c}, got); diff != "" ||
		d.counter != 4 {
		t.Errorf("%d HMACs, want 4; numbers (-by hand +got):\n%s", d.counter, diff)
	}
}

// all draws what is left.
func all(d *Draw) []string {
	var drawn []string
	for ticket, ok := d.Next(); ok; ticket, ok = d.Next() {
		drawn = append(drawn, name(ticket.Run))
	}
	return drawn
}

// tickets makes tickets of OWNER/NAME.
func tickets(names ...string) []Ticket {
	var made []Ticket
	for _, n := range names {
		owner, run, _ := strings.Cut(n, "/")
		made = append(made, Ticket{Owner: rqv1.Owner(owner), Run: rqv1.NamespacedName{Namespace: owner, Name: run}})
	}
	return made
}

// entries lists tickets in a conflict set.
func entries(tickets []Ticket) []rqv1.Conflict {
	var set []rqv1.Conflict
	for _, t := range tickets {
		set = append(set, rqv1.Conflict{Run: t.Run, Owner: t.Owner, Action: rqv1.CutLottery, GPUs: 8, Probability: "0.5"})
	}
	return set
}

func TestDrawsDependOnNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-d]/[a-z]{1,3}`), 1, 9, rapid.ID).Draw(t, "tickets")
		seed := nonce(rapid.IntRange(0, 1000).Draw(t, "seed"))
		want := all(newDraw(seed, newUrn(tickets(names...))))
		other := tickets(rapid.Permutation(names).Draw(t, "shuffled")...)
		for i := range other {
			if rapid.Bool().Draw(t, "upper case") {
				other[i].Owner = rqv1.Owner(strings.ToUpper(string(other[i].Owner)))
			}
		}
		if diff := cmp.Diff(want, all(newDraw(seed, newUrn(other)))); diff != "" {
			t.Errorf("the order or the letter case of tickets changes draws (-want +got):\n%s", diff)
		}
		if got := slices.Sorted(slices.Values(want)); len(slices.Compact(got)) != len(names) {
			t.Errorf("%d tickets are drawn as %v", len(names), want)
		}
	})
}

// TestDrawsIgnoreHoldings changes how many GPUs candidates hold, with the same record.
func TestDrawsIgnoreHoldings(t *testing.T) {
	w, candidates := secondExample()
	set, _, _ := Odds(w, candidates)
	for n := range 100 {
		before, _ := Resolve(w, candidates, set, nonce(n))
		l := newLot(18, 4)
		changed := slices.Clone(candidates)
		for i, size := range []int{4, 56, 4} {
			changed[i].Rest = l.take(size)
			changed[i].Spares = []Spare{{Index: i, Holds: l.take(i)}}
		}
		after, ok := Resolve(&domain{free: l.free, pods: 16, each: 4}, changed, set, nonce(n))
		if shared := min(len(before.Draws), len(after.Draws)); !ok ||
			!slices.Equal(ticketsOf(before.Draws[:shared]), ticketsOf(after.Draws[:shared])) {
			t.Errorf("nonce %d draws %v, and %v when other GPUs are held", n, before.Draws, after.Draws)
		}
	}
}
