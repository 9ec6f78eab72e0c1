package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Most entries of a refusal's lists.
const (
	RefusalPayers  = 16
	RefusalChanges = 8
)

// RunRefusal is why a Run does not start (rule R29): which limit, whose, where, and by how much it is short. It is as of the last
// time that the Run was tried.
type RunRefusal struct {
	// reason in one word, such as InsufficientGPUs or NoBudget: that of the condition Started. If that condition has another
	// reason, such as Activating, there is no refusal.
	Reason string `json:"reason"`
	// owner who is to pay.
	// +optional
	Owner Owner `json:"owner,omitempty"`
	// wantedGPUs are what the Run needs at its narrowest, spares included.
	// +optional
	WantedGPUs int32 `json:"wantedGPUs,omitempty"`
	// shortGPUs are how many of them are missing.
	// +optional
	ShortGPUs int32 `json:"shortGPUs,omitempty"`
	// deficitGPUs are how many are missing in the scope of the Run's Reservation, which may be less than in the whole fleet.
	// +optional
	DeficitGPUs int32 `json:"deficitGPUs,omitempty"`
	// envelope that is short, as Budget/envelope.
	// +optional
	Envelope string `json:"envelope,omitempty"`
	// limit that applies.
	// +optional
	Limit *RefusalLimit `json:"limit,omitempty"`
	// domain of the fast fabric that comes closest to having room.
	// +optional
	Domain string `json:"domain,omitempty"`
	// opens is when the first closed window opens.
	// +optional
	Opens *metav1.Time `json:"opens,omitempty"`
	// maxDuration is the longest, in whole hours and at least a day, with which a Run that declares none would start at once:
	// no Run is cut for it in its first 24 hours of waiting while that is so.
	// +optional
	MaxDuration *metav1.Duration `json:"maxDuration,omitempty"`
	// rule of Kubernetes that rejects nodes, in its own words.
	// +optional
	Rule string `json:"rule,omitempty"`
	// node that the rule rejects, one of them.
	// +optional
	Node string `json:"node,omitempty"`
	// payers are the envelopes that were asked, in order (rule R2), the first 16 of them. For a sponsor that does not lend to
	// the Run's owner, nothing else is shown.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Payers []RefusalPayer `json:"payers,omitempty"`
	// changes are ways to have more of the Run paid for, each by itself, the best first; at most 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Changes []RefusalChange `json:"changes,omitempty"`
}

// RefusalLimit is what keeps an envelope from paying for more.
type RefusalLimit struct {
	// kind of the limit, named as in the Budget or the Run: concurrency, maxGPUHours, lending.maxConcurrency,
	// lending.maxGPUHours, funding.maxBorrowGPUs or window.
	Kind string `json:"kind"`
	// cap is the aggregate cap that sets the limit; absent if the envelope itself does.
	// +optional
	Cap string `json:"cap,omitempty"`
	// max is the limit, in GPUs or GPU-hours.
	Max int64 `json:"max"`
	// left may still be taken, in GPUs or whole GPU-hours; negative when more is taken or reserved than allowed.
	Left int64 `json:"left"`
	// reserved is the part of the limit that is kept for Runs that come first: they have a date (rule R18), or are first in
	// line for what their owner may spend (rule R54). It is therefore not left; absent if nothing is.
	// +optional
	Reserved *ReservedLimit `json:"reserved,omitempty"`
}

// ReservedLimit is what is kept of a limit for Runs that come first.
type ReservedLimit struct {
	// amount in GPUs or whole GPU-hours.
	Amount int64 `json:"amount"`
	// run that has no date, or the one with the first of the dates, as namespace/name.
	Run string `json:"run"`
	// at is that date; absent if none of them has one. A Run that has ended by then by its maxDuration may use reserved GPUs,
	// but not reserved GPU-hours.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
	// within is the longest maxDuration with which a Run may use reserved GPUs although there is no date; absent if there is
	// one, or none may.
	// +optional
	Within *metav1.Duration `json:"within,omitempty"`
	// others are how many more Runs it is reserved for.
	// +optional
	Others int32 `json:"others,omitempty"`
}

// RefusalPayer is one envelope that was asked to pay for a Run, or a sponsor that does not lend to its owner.
type RefusalPayer struct {
	// step of the order in which envelopes are asked, from 1.
	Step int32 `json:"step"`
	// relation of its owner to the Run's.
	Relation Relation `json:"relation"`
	// owner of its Budget.
	Owner Owner `json:"owner"`
	// budget by name; absent for a sponsor that does not lend.
	// +optional
	Budget string `json:"budget,omitempty"`
	// envelope in it.
	// +optional
	Envelope string `json:"envelope,omitempty"`
	// gpus that it would pay for.
	GPUs int32 `json:"gpus"`
	// limit that keeps it from paying for more; absent if more was not needed or the envelope takes no part.
	// +optional
	Limit *RefusalLimit `json:"limit,omitempty"`
	// stops says why it does not pay for more; absent when more was not needed.
	// +optional
	Stops string `json:"stops,omitempty"`
}

// RefusalChange is something that would have more of a Run paid for.
type RefusalChange struct {
	// what to do.
	What string `json:"what"`
	// gpus of the wanted ones that would then be paid for.
	GPUs int32 `json:"gpus"`
}
