package resolver

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestVerifyFindsEveryChange changes one byte of one string of the record. The names of its Runs differ in more than
// one byte, so that no change turns a Run into another.
func TestVerifyFindsEveryChange(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := published(t)
		places := places(&r.Status)
		place := rapid.SampledFrom(places).Draw(rt, "place")
		text := []byte(place.get())
		at := rapid.IntRange(0, len(text)-1).Draw(rt, "at")
		was := text[at]
		text[at] = rapid.Byte().Filter(func(b byte) bool { return b != was }).Draw(rt, "byte")
		place.set(string(text))
		if len(Verify(r)) == 0 {
			rt.Errorf("%s is changed to %q, and nothing is found", place.name, text)
		}
	})
}

// place is a string in a record.
type place struct {
	name string
	get  func() string
	set  func(string)
}

func at[S ~string](name string, s *S) place {
	return place{name, func() string { return string(*s) }, func(text string) { *s = S(text) }}
}

func places(s *rqv1.ReservationStatus) []place {
	l := s.Lottery
	all := []place{at("commitment", &l.Commitment), at("digest", &l.ConflictSetDigest), at("nonce", &l.Nonce)}
	runAt := func(name string, r *rqv1.NamespacedName) {
		all = append(all, at(name+".name", &r.Name), at(name+".namespace", &r.Namespace))
	}
	for i := range s.ConflictSet {
		c := &s.ConflictSet[i]
		runAt("conflictSet", &c.Run)
		all = append(all, at("conflictSet.owner", &c.Owner), at("conflictSet.action", &c.Action),
			at("conflictSet.probability", &c.Probability),
			place{"conflictSet.gpus", func() string { return fmt.Sprintf("%c", c.GPUs) },
				func(text string) { c.GPUs = int32(text[0]) }})
	}
	for i := range l.Draws {
		runAt("draws", &l.Draws[i].Run)
		all = append(all, at("draws.owner", &l.Draws[i].Owner))
	}
	for i := range s.Cuts {
		runAt("cuts", &s.Cuts[i].Run)
		all = append(all, at("cuts.action", &s.Cuts[i].Action))
	}
	return all
}

// FuzzVerify reads records from anywhere: none makes Verify panic, and none is valid unless it is whole.
func FuzzVerify(f *testing.F) {
	valid, err := json.Marshal(published(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(valid)
	f.Add([]byte(`{"status":{"lottery":{"nonce":"00","draws":[{}]},"cuts":[{"action":"Lottery"}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r rqv1.Reservation
		if json.Unmarshal(text, &r) != nil {
			return
		}
		if found := Verify(&r); len(found) == 0 && (r.Status.Lottery == nil || r.Status.ActivatedAt == nil) {
			t.Errorf("valid, without a draw: %s", text)
		}
	})
}
