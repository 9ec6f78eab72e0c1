package sim

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of write to the API server, or several.
type Kind int

// Kinds of writes.
const (
	Statuses Kind = 1 << iota
	Reservations
	Deletions
	Closings
	Services
	Creations
	Bindings
	Expiries
	Openings
	Words
	// ByControllers are those that decisions on Runs are carried out with.
	ByControllers = Statuses | Reservations | Deletions | Closings | Services | Creations | Expiries |
		Openings | Words
	// All are all.
	All = ByControllers | Bindings
)

// Effect is how a write ends.
type Effect int

// Effects.
const (
	Written Effect = iota
	// Refused: the API server does not take it.
	Refused
	// TooLarge: it is of an object that is too large to be stored.
	TooLarge
	// Away: it is not written, since the API server is not up to it.
	Away
	// Late: it is written, but the answer never comes.
	Late
	// Crash: the process dies before it.
	Crash
)

// Fault is what happens at one write.
type Fault struct {
	// Of are the kinds of writes that count, and After is how many of them go well first.
	Of    Kind
	After int
	Do    Effect
	// Lasts has all that come later end so too.
	Lasts bool
}

// Faults are a plan of what goes wrong.
type Faults struct{ plan []Fault }

// Add adds to the plan.
func (f *Faults) Add(faults ...Fault) { f.plan = append(f.plan, faults...) }

// Drop takes off the plan what would end in a way.
func (f *Faults) Drop(do Effect) {
	f.plan = slices.DeleteFunc(f.plan, func(fault Fault) bool { return fault.Do == do })
}

// Next returns how the next write of a kind ends, as the plan stands.
func (f *Faults) Next(kind Kind) Effect {
	for _, fault := range f.plan {
		if fault.Of&kind != 0 && fault.After == 0 {
			return fault.Do
		}
	}
	return Written
}

// at returns how a write of a kind ends that is made now.
func (f *Faults) at(kind Kind) Effect {
	effect, kept := Written, f.plan[:0]
	for _, fault := range f.plan {
		switch counts := fault.Of&kind != 0; {
		case counts && fault.After > 0:
			fault.After--
		case counts && effect == Written:
			effect = fault.Do
			if !fault.Lasts {
				continue
			}
		}
		kept = append(kept, fault)
	}
	f.plan = kept
	return effect
}

// Crashed is what a process panics with that dies at a write: it does nothing more.
type Crashed struct{}

// errBehind is the error for a Run whose last status has not been seen yet.
var errBehind = errors.New("its last status has not been seen")

// errLate is the error for a write whose answer never came.
var errLate = errors.New("the answer did not come")

// exceededQuota is what a ResourceQuota says first.
const exceededQuota = "exceeded quota"

// forbidden is the error for an object that the API server does not take.
func forbidden(object, why string) error {
	return apierrors.NewForbidden(schema.GroupResource{}, object, errors.New(why))
}

// write makes a write, unless a fault has it end otherwise.
func (c *Cluster) write(kind Kind, object string, do func()) error {
	c.Writes++
	switch c.Faults.at(kind) {
	case Crash:
		panic(Crashed{})
	case Refused:
		return forbidden(object, exceededQuota)
	case TooLarge:
		return apierrors.NewRequestEntityTooLargeError(object)
	case Away:
		return apierrors.NewInternalError(errors.New("it is away"))
	case Late:
		do()
		return errLate
	}
	do()
	return nil
}

// Step does something in which the process may die, and reports whether it did.
func (c *Cluster) Step(do func()) (died bool) {
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case Crashed:
			died = true
		default:
			panic(r)
		}
	}()
	do()
	return false
}
