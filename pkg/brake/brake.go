package brake

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// ConfigMap is the name of the object, in the scheduler's namespace.
const ConfigMap = "jobtree-cuts"

// Keys of its data. Each activation that is called off has a key of its own, callOff followed by NAMESPACE.NAME of its
// Reservation.
const (
	keyPaused  = "paused"
	keyBy      = "pausedBy"
	keyAt      = "pausedAt"
	keyBecause = "pausedBecause"
	callOff    = "call-off."
)

// Word is what somebody has said: who, when and why.
type Word struct {
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at"`
	Because string    `json:"because,omitempty"`
}

// String is the word as a message ends with it: "by WHO since WHEN: WHY".
func (w Word) String() string {
	out := ""
	if w.By != "" {
		out += " by " + w.By
	}
	if !w.At.IsZero() {
		out += " at " + w.At.UTC().Format(time.RFC3339)
	}
	if w.Because != "" {
		out += ": " + w.Because
	}
	return out
}

// CallOff is the word that an activation is not to go on. UID is the Reservation's; empty for whichever has the name.
type CallOff struct {
	UID types.UID `json:"uid,omitempty"`
	Word
}

// State is how the brakes stand. The zero State brakes nothing.
type State struct {
	// Paused says that no activation is decided, and Word who said so. Problem is what does not parse, for which it is
	// paused too.
	Paused bool
	Word
	Problem string
	// CalledOff are the activations that are called off, by Reservation.
	CalledOff map[types.NamespacedName]CallOff
}

// Says is the State in a sentence; empty when nothing is paused.
func (s *State) Says() string {
	switch {
	case s.Problem != "":
		return "cuts are paused, since " + s.Problem
	case s.Paused:
		return "cuts are paused" + s.Word.String()
	}
	return ""
}

// Off reports whether the activation of a Reservation is called off, and by which word.
func (s *State) Off(name types.NamespacedName, uid types.UID) (Word, bool) {
	off, said := s.CalledOff[name]
	return off.Word, said && (off.UID == "" || off.UID == uid)
}

// Parse reads the data of the ConfigMap; nil when there is none.
func Parse(data map[string]string) State {
	s := State{Word: Word{By: data[keyBy], Because: data[keyBecause]}, CalledOff: map[types.NamespacedName]CallOff{}}
	var problems []string
	if text, said := data[keyPaused]; said {
		paused, err := strconv.ParseBool(text)
		if s.Paused = paused; err != nil {
			problems = append(problems, fmt.Sprintf("%s is %q: it must be true or false", keyPaused, text))
		}
	}
	s.At, _ = time.Parse(time.RFC3339, data[keyAt]) // only told
	for key, text := range data {
		rest, ok := strings.CutPrefix(key, callOff)
		if !ok {
			continue
		}
		namespace, name, ok := strings.Cut(rest, ".")
		off := CallOff{}
		if err := json.Unmarshal([]byte(text), &off); err != nil || !ok || namespace == "" || name == "" {
			problems = append(problems,
				fmt.Sprintf("%s is not a call-off.NAMESPACE.RESERVATION with a JSON object of uid, by, at and because", key))
			continue
		}
		s.CalledOff[types.NamespacedName{Namespace: namespace, Name: name}] = off
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		s.Problem = fmt.Sprintf("ConfigMap %s has entries that cannot be read: %s", ConfigMap, strings.Join(problems, "; "))
	}
	return s
}

// Pause returns the change of the data that pauses cuts; a key without a value is to go.
func Pause(w Word) map[string]*string {
	yes, at := "true", w.At.UTC().Format(time.RFC3339)
	return map[string]*string{keyPaused: &yes, keyBy: &w.By, keyAt: &at, keyBecause: &w.Because}
}

// Resume returns the change of the data that lets cuts are resumed.
func Resume() map[string]*string {
	return map[string]*string{keyPaused: nil, keyBy: nil, keyAt: nil, keyBecause: nil}
}

// Off returns the change of the data that calls an activation off. Reservations have short enough names: a Run's and a
// number.
func Off(name types.NamespacedName, off CallOff) (map[string]*string, error) {
	text, err := json.Marshal(off)
	value := string(text)
	return map[string]*string{KeyOf(name): &value}, err
}

// KeyOf returns the key under which an activation is called off.
func KeyOf(name types.NamespacedName) string { return callOff + name.Namespace + "." + name.Name }

// Runs returns the Runs that cuts end or shrink, which is what is counted: a spare that is dropped is no cut of its
// Run, nor is a return of what it had on loan.
func Runs(cuts []rqv1.Cut) []types.UID {
	var out []types.UID
	for i := range cuts {
		if c := &cuts[i]; c.Action != rqv1.CutDropSpare && c.Action.Cuts() && !slices.Contains(out, c.UID) {
			out = append(out, c.UID)
		}
	}
	return out
}
