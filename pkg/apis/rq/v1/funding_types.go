package v1

// RunFundingStatus says who pays for what a Run holds.
type RunFundingStatus struct {
	// ownedGPUs are paid by the owner's own envelopes.
	OwnedGPUs int32 `json:"ownedGPUs"`
	// borrowedGPUs are paid by others: by its family, which does not count against maxBorrowGPUs, and by sponsors.
	BorrowedGPUs int32 `json:"borrowedGPUs"`
	// sponsors are the others who pay.
	// +optional
	// +listType=atomic
	Sponsors []RunSponsor `json:"sponsors,omitempty"`
}

// RunSponsor is somebody other than the owner who pays for a Run.
type RunSponsor struct {
	// owner who pays.
	Owner Owner `json:"owner"`
	// gpus paid for.
	GPUs int32 `json:"gpus"`
	// relation of the payer to the Run's owner.
	// +kubebuilder:validation:Enum=sibling;ancestor;sponsor;overdraft
	Relation string `json:"relation"`
}
