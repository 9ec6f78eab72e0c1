package v1

// RunWidth is the width of a Run, in GPUs, not counting spares.
type RunWidth struct {
	// min is the narrowest width that the Run accepts; 0 for an opportunistic one.
	Min int32 `json:"min"`
	// max is the widest.
	Max int32 `json:"max"`
	// desired is the width that the Run grows or shrinks to.
	Desired int32 `json:"desired"`
	// granted is the width that a started Run may have: pods beyond it are ended, unless the Run is growing.
	// +optional
	Granted int32 `json:"granted,omitempty"`
	// growing is the width that the cohort in progress grows the Run to (rule R23); absent if there is none. It is granted once
	// all of the cohort is bound.
	// +optional
	Growing int32 `json:"growing,omitempty"`
	// allocated is the width that is bound.
	Allocated int32 `json:"allocated"`
	// pending says which change of width is in progress, such as `Grow to 160`.
	// +optional
	Pending string `json:"pending,omitempty"`
	// lacks is what keeps a running Run from growing to what it desires (rule R23): GPUs that are free and meant for nobody
	// else, Money, or Nodes that other scheduling rules do not turn down; absent if nothing does, or it is not known yet.
	// +optional
	Lacks WidthLacks `json:"lacks,omitempty"`
}

// WidthLacks is what a Run lacks to become wider.
// +kubebuilder:validation:Enum=GPUs;Money;Nodes
type WidthLacks string

// What Runs lack to become wider.
const (
	LacksGPUs  WidthLacks = "GPUs"
	LacksMoney WidthLacks = "Money"
	LacksNodes WidthLacks = "Nodes"
)
