package clitest

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// Committed is a Reservation whose nonce is committed to; revealed is it after its activation: two tickets of three
// were drawn, and a Run was shrunk.
func Committed() (*rqv1.Reservation, [32]byte) {
	run := RunOf("big", 64, 0, Waits("InsufficientGPUs", "60 GPUs are short"))
	r := ReservationOf(&run, 60,
		Conflict(rqv1.CutShrink, "org:mm", "elastic", 16, "1"),
		Conflict(rqv1.CutLottery, "org:mm", "mm1", 48, "0.5"),
		Conflict(rqv1.CutLottery, "org:mm", "mm2", 4, "0.5"),
		Conflict(rqv1.CutLottery, "org:rai", "ra2", 16, "1"))
	r.TypeMeta = metav1.TypeMeta{APIVersion: rqv1.GroupVersion.String(), Kind: "Reservation"}
	nonce := resolver.Nonce([]byte("a key of the tests"), r.UID)
	r.Status.Lottery = &rqv1.Lottery{Commitment: resolver.Commitment(nonce), Odds: "exact"}
	return &r, nonce
}

// Revealed is the Reservation once what it drew is published.
func Revealed(t *testing.T) *rqv1.Reservation {
	t.Helper()
	r, nonce := Committed()
	r.Status.State, r.Status.ActivatedAt = rqv1.ReservationReleased, Ptr(
		metav1.NewMicroTime(Noon.Add(16*time.Minute+time.Millisecond)))
	r.Status.EndedAt = Ptr(After(17 * time.Minute))
	r.Status.Lottery.ConflictSetDigest = resolver.Digest(r.Status.ConflictSet)
	r.Status.Lottery.Nonce = hex.EncodeToString(nonce[:])
	r.Status.Cuts = []rqv1.Cut{{Run: rqv1.NamespacedName{Namespace: "mm", Name: "elastic"}, UID: "elastic-uid",
		Action: rqv1.CutShrink, GPUs: 16, Width: Ptr[int32](96)}}
	draw := resolver.NewDraw(nonce, r.Status.ConflictSet)
	for range 2 {
		ticket, ok := draw.Next()
		if !ok {
			t.Fatal("no ticket is left")
		}
		r.Status.Lottery.Draws = append(r.Status.Lottery.Draws, rqv1.Draw{Owner: ticket.Owner, Run: ticket.Run})
		r.Status.Cuts = append(r.Status.Cuts, rqv1.Cut{Run: ticket.Run, UID: types.UID(ticket.Run.Name + "-uid"),
			Action: rqv1.CutLottery, GPUs: 4})
	}
	return r
}

// TakenBack is the revealed record in which the first ticket was not needed in the end.
func TakenBack(t *testing.T) *rqv1.Reservation {
	r := Revealed(t)
	r.Status.Cuts = append(r.Status.Cuts[:1], r.Status.Cuts[2])
	return r
}

// Tampered is a record in which somebody else is said to have been drawn.
func Tampered(t *testing.T) *rqv1.Reservation {
	r := Revealed(t)
	r.Status.Lottery.Draws[0], r.Status.Lottery.Draws[1] = r.Status.Lottery.Draws[1], r.Status.Lottery.Draws[0]
	return r
}

// Text is an object as a file holds it.
func Text(t *testing.T, object any) string {
	t.Helper()
	out, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Flip changes the first digit.
func Flip(hexadecimal string) string {
	return fmt.Sprintf("%x", (strings.IndexByte("0123456789abcdef", hexadecimal[0])+1)%16) + hexadecimal[1:]
}
