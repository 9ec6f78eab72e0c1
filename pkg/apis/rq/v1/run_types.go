package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Run is a gang of pods that asks for GPUs: all of it starts, or none of it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=jobtree
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.spec.owner`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.resources.gpuType`
// +kubebuilder:printcolumn:name="GPUs",type=integer,JSONPath=`.spec.resources.totalGPUs`
// +kubebuilder:printcolumn:name="Allocated",type=integer,JSONPath=`.status.width.allocated`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Start",type=date,JSONPath=`.status.earliestStart`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="a Run's name may have at most 52 characters, so that its pods' names are valid host names",fieldPath=".metadata.name"
type Run struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the Run asks for.
	Spec RunSpec `json:"spec"`
	// status is what the Run has, written by the scheduler.
	// +optional
	Status RunStatus `json:"status,omitempty"`
}

// RunList is a list of Runs.
//
// +kubebuilder:object:root=true
type RunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Run `json:"items"`
}

// RunSpec is the desired state of a Run.
type RunSpec struct {
	// owner who spends: a colon-separated path such as org:ai:rai:sys.
	Owner Owner `json:"owner"`
	// resources is the number and kind of GPUs.
	Resources RunResources `json:"resources"`
	// locality says which GPUs must be close to each other.
	// +optional
	Locality *RunLocality `json:"locality,omitempty"`
	// sparesPerGroup is the number of GPUs that stand by in each group's domain. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SparesPerGroup *int32 `json:"sparesPerGroup,omitempty"`
	// spares is another name of sparesPerGroup.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Spares *int32 `json:"spares,omitempty"`
	// malleable allows the Run to change its width while it runs. Default: the width is fixed.
	// +optional
	Malleable *RunMalleable `json:"malleable,omitempty"`
	// funding says from whom the Run may borrow. Default: only from its own family.
	// +optional
	Funding *RunFunding `json:"funding,omitempty"`
	// runtime says how long the Run takes and whether it can be requeued.
	// +optional
	Runtime *RunRuntime `json:"runtime,omitempty"`
	// opportunistic Runs use GPUs that nobody else needs at the moment and give them back on demand. Default: false.
	// +optional
	Opportunistic bool `json:"opportunistic,omitempty"`
	// template of the pods. Default: a pause container, so that the Run holds its GPUs and does nothing.
	// +optional
	Template *corev1.PodTemplateSpec `json:"template,omitempty"`
}

// RunResources is the number and kind of GPUs that a Run asks for.
type RunResources struct {
	// gpuType is the flavor of GPU, such as H100-80GB.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	GPUType string `json:"gpuType"`
	// totalGPUs is the number of GPUs that the Run starts with, spares apart.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	TotalGPUs int32 `json:"totalGPUs"`
	// gpusPerPod is the number of GPUs of one pod. Default: the request in the template; else the largest number that
	// divides every width and fits a node (rule R14).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	GPUsPerPod *int32 `json:"gpusPerPod,omitempty"`
}

// RunLocality says which GPUs must be close to each other.
type RunLocality struct {
	// groupGPUs is the size of a group: GPUs that must share one fast-fabric domain. Default: no groups; the pods still
	// touch as few domains as possible.
	// +optional
	// +kubebuilder:validation:Minimum=1
	GroupGPUs *int32 `json:"groupGPUs,omitempty"`
	// allowCrossGroupSpread lets groups lie in different domains. Default: true.
	// +optional
	AllowCrossGroupSpread *bool `json:"allowCrossGroupSpread,omitempty"`
}

// RunMalleable is the range of widths of a Run that can change its width. Every width is minTotalGPUs plus a whole
// number of steps.
type RunMalleable struct {
	// minTotalGPUs is the narrowest width.
	// +kubebuilder:validation:Minimum=1
	MinTotalGPUs int32 `json:"minTotalGPUs"`
	// maxTotalGPUs is the widest width.
	// +kubebuilder:validation:Minimum=1
	MaxTotalGPUs int32 `json:"maxTotalGPUs"`
	// stepGPUs is the least change of width.
	// +kubebuilder:validation:Minimum=1
	StepGPUs int32 `json:"stepGPUs"`
	// desiredTotalGPUs is the width to grow or shrink to. Default: maxTotalGPUs.
	// +optional
	// +kubebuilder:validation:Minimum=1
	DesiredTotalGPUs *int32 `json:"desiredTotalGPUs,omitempty"`
}

// RunFunding says from whom, outside its family, a Run may borrow.
//
// +kubebuilder:validation:XValidation:rule="self.allowBorrow || (!has(self.sponsors) || size(self.sponsors) == 0)",message="sponsors need allowBorrow: true",fieldPath=".sponsors"
// +kubebuilder:validation:XValidation:rule="self.allowBorrow || !has(self.maxBorrowGPUs)",message="maxBorrowGPUs needs allowBorrow: true",fieldPath=".maxBorrowGPUs"
type RunFunding struct {
	// allowBorrow switches borrowing from sponsors on.
	AllowBorrow bool `json:"allowBorrow"`
	// maxBorrowGPUs is the most GPUs held from sponsors at a time. Default: unbounded.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxBorrowGPUs *int32 `json:"maxBorrowGPUs,omitempty"`
	// sponsors are the owners to borrow from, in order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Sponsors []Owner `json:"sponsors,omitempty"`
}

// RunRuntime says how long a Run takes and whether it can be requeued.
type RunRuntime struct {
	// checkpoint is the interval between checkpoints. A Run that declares one is safe to requeue.
	// +optional
	Checkpoint *metav1.Duration `json:"checkpoint,omitempty"`
	// maxDuration after which the Run is ended. Default: unbounded.
	// +optional
	MaxDuration *metav1.Duration `json:"maxDuration,omitempty"`
}

// RunPhase is where a Run is in its life.
//
// +kubebuilder:validation:Enum=Pending;Running;Completed;Failed
type RunPhase string

// Values of RunPhase.
const (
	RunPending   RunPhase = "Pending"
	RunRunning   RunPhase = "Running"
	RunCompleted RunPhase = "Completed"
	RunFailed    RunPhase = "Failed"
)

// Condition types of a Run.
const (
	// ConditionStarted is True once every pod of the Run is bound; while False its reason says what is short.
	ConditionStarted = "Started"
	// ConditionFinished is True once the Run is Completed or Failed.
	ConditionFinished = "Finished"
)

// RunStatus is the observed state of a Run.
type RunStatus struct {
	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase of the Run.
	// +optional
	Phase RunPhase `json:"phase,omitempty"`
	// message says in a sentence where the Run is and what stands in its way.
	// +optional
	Message string `json:"message,omitempty"`
	// conditions of the Run.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// width of the Run, in GPUs.
	// +optional
	Width *RunWidth `json:"width,omitempty"`
	// funding says who pays for what the Run holds.
	// +optional
	Funding *RunFundingStatus `json:"funding,omitempty"`
	// pendingReservation is the name of the Reservation that the Run waits for.
	// +optional
	PendingReservation string `json:"pendingReservation,omitempty"`
	// earliestStart is when the Run is expected to start.
	// +optional
	EarliestStart *metav1.Time `json:"earliestStart,omitempty"`
	// atRisk lists the Reservations whose activation may cut this Run.
	// +optional
	// +listType=atomic
	AtRisk []RunRisk `json:"atRisk,omitempty"`
}

// RunWidth is the width of a Run, in GPUs, spares apart.
type RunWidth struct {
	// min is the narrowest width that the Run accepts.
	Min int32 `json:"min"`
	// max is the widest.
	Max int32 `json:"max"`
	// desired is the width that the Run tends to.
	Desired int32 `json:"desired"`
	// allocated is the width that is bound.
	Allocated int32 `json:"allocated"`
	// pending says which change of width is under way, such as `Grow to 160`.
	// +optional
	Pending string `json:"pending,omitempty"`
}

// RunFundingStatus says who pays for what a Run holds.
type RunFundingStatus struct {
	// ownedGPUs are paid by the owner's own envelopes.
	OwnedGPUs int32 `json:"ownedGPUs"`
	// borrowedGPUs are paid by anybody else.
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

// RunRisk is a Reservation whose activation may cut a Run.
type RunRisk struct {
	// reservation whose activation threatens the Run.
	Reservation string `json:"reservation"`
	// at is when it activates.
	At metav1.Time `json:"at"`
	// probability of being cut, from 0 to 1, as a decimal.
	// +kubebuilder:validation:Pattern=`^(0(\.[0-9]+)?|1(\.0+)?)$`
	Probability string `json:"probability"`
}
