package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
)

func TestVerify(t *testing.T) {
	pending, _ := clitest.Committed()
	fixed := clitest.Revealed(t)
	fixed.Status.State, fixed.Status.EndedAt, fixed.Status.Cuts = rqv1.ReservationActivating, nil, nil
	fixed.Status.Lottery.Nonce, fixed.Status.Lottery.Draws = "", nil
	altered := fixed.DeepCopy()
	altered.Status.ConflictSet[1].GPUs = 47
	canceled := pending.DeepCopy()
	canceled.Status.State, canceled.Status.EndedAt = rqv1.ReservationCanceled, clitest.Ptr(clitest.After(time.Minute))
	structural := clitest.Revealed(t)
	structural.Status.Lottery.Draws, structural.Status.Cuts = nil, structural.Status.Cuts[:1]
	for name, c := range map[string]struct {
		record  *rqv1.Reservation
		verdict string
	}{
		"verify-valid":      {clitest.Revealed(t), verdictValid},
		"verify-taken-back": {clitest.TakenBack(t), verdictValid},
		"verify-structural": {structural, verdictValid},
		"verify-tampered":   {clitest.Tampered(t), verdictInvalid},
		"verify-altered":    {altered, verdictInvalid},
		"verify-pending":    {pending, verdictUnrevealed},
		"verify-fixed":      {fixed, verdictUnrevealed},
		"verify-canceled":   {canceled, verdictUnrevealed},
	} {
		v := Run(c.record, clitest.Noon.Add(2*time.Second))
		if v.Verdict != c.verdict {
			t.Errorf("%s: %s, want %s", name, v.Verdict, c.verdict)
		}
		var text strings.Builder
		if err := writeVerification(&text, v); err != nil {
			t.Fatal(err)
		}
		clitest.Golden(t, name, text.String())
	}
	var text strings.Builder
	if err := clitest.InFormat("json", &text, Run(clitest.TakenBack(t), clitest.Noon)); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "verify-json", text.String())
}

// Whatever byte of the record is changed, the file is not called valid.
func TestVerifyFindsChanges(t *testing.T) {
	valid := clitest.Revealed(t)
	for name, change := range map[string]func(*rqv1.ReservationStatus){
		"commitment": func(s *rqv1.ReservationStatus) { s.Lottery.Commitment = clitest.Flip(s.Lottery.Commitment) },
		"nonce":      func(s *rqv1.ReservationStatus) { s.Lottery.Nonce = clitest.Flip(s.Lottery.Nonce) },
		"digest": func(s *rqv1.ReservationStatus) {
			s.Lottery.ConflictSetDigest = clitest.Flip(s.Lottery.ConflictSetDigest)
		},
		"odds":       func(s *rqv1.ReservationStatus) { s.ConflictSet[1].Probability = "0.51" },
		"owner":      func(s *rqv1.ReservationStatus) { s.ConflictSet[1].Owner = "org:other" },
		"no ticket":  func(s *rqv1.ReservationStatus) { s.ConflictSet = s.ConflictSet[:3] },
		"draw":       func(s *rqv1.ReservationStatus) { s.Lottery.Draws[0].Run.Name = "elastic" },
		"cut":        func(s *rqv1.ReservationStatus) { s.Cuts[1].Run.Name = "elastic" },
		"no nonce":   func(s *rqv1.ReservationStatus) { s.Lottery.Nonce = "" },
		"no lottery": func(s *rqv1.ReservationStatus) { s.Lottery = nil },
	} {
		changed := valid.DeepCopy()
		change(&changed.Status)
		v := Run(changed, clitest.Noon)
		if diff := cmp.Diff(verdictInvalid, v.Verdict); diff != "" || len(v.Differs) == 0 {
			t.Errorf("%s: %s %v", name, diff, v.Differs)
		}
		if err := writeVerification(&strings.Builder{}, v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
