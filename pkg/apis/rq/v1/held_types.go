package v1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RunForgone is a rank of a group for which nothing is kept any more (rule R42).
type RunForgone struct {
	// index of the rank.
	// +kubebuilder:validation:Minimum=0
	Index int32 `json:"index"`
	// pod is the UID of the pod that the rank had last: what is said here is over once it has another one that runs.
	// +optional
	Pod types.UID `json:"pod,omitempty"`
}

// RunHeldInVain tells how often places were held for pods that did not come in time: those that their controller was to
// create, and those of a Run that had lost a node and did not start again (rule R46).
type RunHeldInVain struct {
	// count is how often that was, up to 6. It is halved for each hour for which the Run then ran.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=6
	Count int32 `json:"count"`
	// since is when the places began to be held that were held last. RFC 3339.
	Since metav1.Time `json:"since"`
	// until is until when no places are held again for pods that do not exist: 2, 4, … 64 times gangDeadline after that, or
	// no longer where it was the first place of a lost pod, or of a lost Run. RFC 3339.
	Until metav1.Time `json:"until"`
}

// MostInVain is the most attempts that are counted, and so bounds the rest after the last of them.
const MostInVain = 6

// Halved returns the count, halved for each hour of a time; nil where nothing is left of it.
func (h *RunHeldInVain) Halved(over time.Duration) *RunHeldInVain {
	if h == nil || over < time.Hour {
		return h
	}
	left := *h
	left.Count >>= min(over/time.Hour, MostInVain)
	if left.Count == 0 {
		return nil
	}
	return &left
}

// Left returns what is left of the count at an instant: it is halved with each hour after its rest; nil for nothing.
func (h *RunHeldInVain) Left(at time.Time) *RunHeldInVain {
	if h == nil {
		return nil
	}
	return h.Halved(at.Sub(h.Until.Time))
}

// BudgetHeldInVain is what is left of such counts of groups that are gone, all of an owner in a namespace: the next Run
// of that owner there whose pods are made late begins with it.
type BudgetHeldInVain struct {
	// owner of the Runs.
	Owner Owner `json:"owner"`
	// namespace of the Runs.
	Namespace     string `json:"namespace"`
	RunHeldInVain `json:",inline"`
}

// MostGoneInVain is the most of them that a Budget keeps: those whose rests are over last.
const MostGoneInVain = 100

// HeldUnpaid is for how long places may be held that nobody pays for, and nothing is counted.
const HeldUnpaid = 30 * time.Second

// Rests reports whether the Run may not hold places for absent pods at an instant.
func (h *RunHeldInVain) Rests(at time.Time) bool { return h != nil && at.Before(h.Until.Time) }
