package audit

import (
	"fmt"
	"strings"
)

// Invariant names what is checked.
type Invariant string

// Invariants lists all that are checked, in the order in which they are reported.
var Invariants = []Invariant{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "R21"}

// Level tells what is wrong from what should only be known.
type Level string

// Values of Level.
const (
	// Violation: what always holds does not.
	Violation Level = "violation"
	// Information: it is as it may be, and somebody may want to know.
	Information Level = "information"
)

// Object names an API object.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns KIND NAMESPACE/NAME.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Finding is one thing that is not as it should be, or that somebody may want to know.
type Finding struct {
	Invariant Invariant `json:"invariant"`
	Level     Level     `json:"level"`
	// Objects that it is about, the one that it was found on first.
	Objects []Object `json:"objects"`
	Message string   `json:"message"`
	Remedy  string   `json:"remedy"`
	// about tells findings on the same object apart.
	about string
}

// Key is the same for the same finding in every look.
func (f *Finding) Key() string {
	return strings.Join([]string{string(f.Invariant), string(f.Level), f.Objects[0].String(), f.about}, "|")
}

func newFinding(level Level, i Invariant, about string, objects []Object, format string, args ...any) Finding {
	f := Finding{Invariant: i, Level: level, Objects: objects, Message: fmt.Sprintf(format, args...), about: about}
	f.Remedy = remedies[i]
	if level == Information {
		f.Remedy = "Nothing, unless you did not expect it."
	}
	return f
}

// remedies say what to do about a violation.
var remedies = map[Invariant]string{
	"I1": "See who holds the node with `kubectl runs leases -A --open`, and delete the Run that started there last.",
	"I2": "If the scheduler runs, it deletes such pods and closes such GPU leases within seconds: see its log. Delete " +
		"the pod to have it done.",
	"I3": "See `kubectl runs budgets usage`; nothing is stopped for it. Report it with the Budget and its " +
		"open GPU leases.",
	"I4": "The API server refuses such a change: find out who switched the CustomResourceDefinition's rules off, and " +
		"restore the object from a backup.",
	"I5": "Delete the pods that are left; their GPU leases close by themselves while the scheduler runs.",
	"I6": "If the labels of nodes were changed after the group had started, change them back; else delete one of its " +
		"pods, or the Run.",
	"I7": "See `kubectl runs explain` and the scheduler's log: nothing is replacing what the Run has lost.",
	"I8": "Restart the scheduler, which adds everything up again from the GPU leases. If it stays, report it with the " +
		"Budget, its record and its GPU leases.",
	"I9":  "If the scheduler runs, it takes such a gang back: see its log. Delete the Run's pods to have it done.",
	"I10": "See the Reservation, and the scheduler's log at the time of its activation.",
	"I11": "Delete the pod, and give its GPUs to a Run.",
	"I12": "The pod holds GPUs that nobody pays for: delete it. Report what the scheduler's log says of its GPU lease.",
	"R21": "Check it with `kubectl runs explain --verify`, and find out who has written the Reservation.",
}
