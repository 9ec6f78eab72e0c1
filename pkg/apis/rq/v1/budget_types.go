package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Budget says what an owner may hold: one or more envelopes, each a cap on GPUs of one type (its flavor).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=bgt,categories=jobtree
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.spec.owner`
// +kubebuilder:printcolumn:name="Used",type=integer,JSONPath=`.status.usedGPUs`
// +kubebuilder:printcolumn:name="Free",type=integer,JSONPath=`.status.headroomGPUs`
// +kubebuilder:printcolumn:name="Overdraft",type=integer,JSONPath=`.status.overdraftGPUs`
// +kubebuilder:printcolumn:name="Overdrawn",type=string,JSONPath=`.status.conditions[?(@.type=="Overdrawn")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule=`size(self.metadata.name) <= 63`,message=`metadata.name of a Budget may have at most 63 characters, so that it fits a label's value`
type Budget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the owner may hold.
	Spec BudgetSpec `json:"spec"`
	// status is what is held, written by the scheduler.
	// +optional
	Status BudgetStatus `json:"status,omitempty"`
}

// BudgetList is a list of Budgets.
//
// +kubebuilder:object:root=true
type BudgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Budget `json:"items"`
}

// BudgetSpec is the desired state of a Budget.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.parents) || self.parents.all(p, p != self.owner && !p.startsWith(self.owner + ':'))`,message=`parents may hold neither the owner itself nor an owner below it, because a family has no circles`,fieldPath=".parents"
type BudgetSpec struct {
	// owner whose Runs the envelopes pay for first.
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message=`owner must be a path of lower-case names joined by colons, such as org:ai:rai:sys`
	Owner Owner `json:"owner"`
	// parents are the owners above this one in the family. Default: the nearest existing ancestor in the colon path.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule=`self.all(o, o.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'))`,message=`parents must be owners: paths of lower-case names joined by colons, such as org:ai`
	Parents []Owner `json:"parents,omitempty"`
	// envelopes are the caps. Each pays for GPUs of one type, its flavor.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Envelopes []Envelope `json:"envelopes"`
	// aggregateCaps bound several envelopes of this Budget together.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	AggregateCaps []AggregateCap `json:"aggregateCaps,omitempty"`
}

// Sharing says whether the owner's family may spend from an envelope.
//
// +kubebuilder:validation:Enum=family;none
type Sharing string

// Values of Sharing.
const (
	SharingFamily Sharing = "family"
	SharingNone   Sharing = "none"
)

// Envelope is a cap on GPUs of one flavor, on nodes that match a selector, in a window of time.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.start) || !has(self.end) || self.start < self.end`,message=`end must be after start`,fieldPath=".end"
// +kubebuilder:validation:XValidation:rule=`!has(self.lending) || !has(self.lending.maxConcurrency) || self.lending.maxConcurrency <= self.concurrency`,message=`lending.maxConcurrency may not exceed the envelope's concurrency`,fieldPath=".lending.maxConcurrency"
// +kubebuilder:validation:XValidation:rule=`!has(self.lending) || !has(self.lending.maxGPUHours) || !has(self.maxGPUHours) || self.lending.maxGPUHours <= self.maxGPUHours`,message=`lending.maxGPUHours may not exceed the envelope's maxGPUHours`,fieldPath=".lending.maxGPUHours"
type Envelope struct {
	// name of the envelope, unique in its Budget.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,message=`the name of an envelope must be lower-case letters, digits and dashes, such as west-h100`
	Name string `json:"name"`
	// flavor is the GPU type that the envelope pays for: the same name as in a Run's resources.gpuType.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')`,message=`flavor must be a valid label value, such as H100-80GB`
	Flavor string `json:"flavor"`
	// selector holds labels that a node must carry; the value `*` matches any. Default: every node of the flavor.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Selector map[string]string `json:"selector,omitempty"`
	// concurrency is the most GPUs that may be held at a time, 1 to 10,000,000 (rule R3).
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000000
	Concurrency int32 `json:"concurrency"`
	// maxGPUHours bounds the GPU-hours spent in the window, from 1 (rule R7). Default: unbounded.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	MaxGPUHours *int64 `json:"maxGPUHours,omitempty"`
	// start of the window, inclusive, such as 2026-01-31T00:00:00Z. Default: open.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Start *metav1.Time `json:"start,omitempty"`
	// end of the window, exclusive, after start. Default: open.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	End *metav1.Time `json:"end,omitempty"`
	// sharing says whether the owner's family may spend from the envelope: family or none (rule R2).
	// +optional
	// +kubebuilder:default=family
	Sharing Sharing `json:"sharing,omitempty"`
	// lending says which owners outside the family may spend from the envelope. Default: none.
	// +optional
	Lending *Lending `json:"lending,omitempty"`
}

// Lending is the policy under which an envelope pays for owners outside its family.
type Lending struct {
	// allow lets others borrow.
	Allow bool `json:"allow"`
	// to lists who may borrow: owners, prefixes such as org:ai:*, or * for everybody (rule R4). Default: nobody.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	To []ACLEntry `json:"to,omitempty"`
	// maxConcurrency is the most GPUs lent at a time. Default: the envelope's concurrency.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000000
	MaxConcurrency *int32 `json:"maxConcurrency,omitempty"`
	// maxGPUHours bounds the GPU-hours lent in the window. Default: unbounded.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	MaxGPUHours *int64 `json:"maxGPUHours,omitempty"`
}

// AggregateCap bounds several envelopes of one flavor together.
//
// +kubebuilder:validation:XValidation:rule="has(self.maxConcurrency) || has(self.maxGPUHours)",message="an aggregate cap needs maxConcurrency or maxGPUHours"
type AggregateCap struct {
	// name of the cap, unique in its Budget.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,message=`the name of an aggregate cap must be lower-case letters, digits and dashes, such as west-h100`
	Name string `json:"name"`
	// flavor is the GPU type of the envelopes under the cap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')`,message=`flavor must be a valid label value, such as H100-80GB`
	Flavor string `json:"flavor"`
	// envelopes under the cap, by name, in this Budget.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	Envelopes []string `json:"envelopes"`
	// maxConcurrency is the most GPUs that the envelopes may hold together. Default: unbounded.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=640000000
	MaxConcurrency *int32 `json:"maxConcurrency,omitempty"`
	// maxGPUHours bounds the GPU-hours that the envelopes may spend together. Default: unbounded.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	MaxGPUHours *int64 `json:"maxGPUHours,omitempty"`
}

// Condition types of a Budget.
const (
	// ConditionOverdrawn is True while more is held than the Budget allows (rule R8); its message says where.
	ConditionOverdrawn = "Overdrawn"
	// ConditionCircular is True while the owner is its own ancestor by way of parents, which are ignored for as long.
	ConditionCircular = "Circular"
)

// BudgetStatus is the observed state of a Budget.
type BudgetStatus struct {
	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// observedAt is when the numbers were true. GPU-hours grow from then on by hourly.
	// +optional
	ObservedAt *metav1.Time `json:"observedAt,omitempty"`
	// usedGPUs are held against the concurrency of all envelopes together.
	// +optional
	UsedGPUs int32 `json:"usedGPUs"`
	// overdraftGPUs is the part of usedGPUs that exceeds what the Budget allows.
	// +optional
	OverdraftGPUs int32 `json:"overdraftGPUs"`
	// headroomGPUs is the sum of what may still be taken from each envelope.
	// +optional
	HeadroomGPUs int32 `json:"headroomGPUs"`
	// envelopes holds the usage of each envelope.
	// +optional
	// +listType=map
	// +listMapKey=name
	Envelopes []EnvelopeStatus `json:"envelopes,omitempty"`
	// aggregateCaps holds the usage under each aggregate cap.
	// +optional
	// +listType=map
	// +listMapKey=name
	AggregateCaps []AggregateCapStatus `json:"aggregateCaps,omitempty"`
	// heldInVain tells of groups that are gone for how many attempts places were held in vain for pods that their
	// controllers were to create, by owner and namespace, 100 at most. A count is halved with each hour after until.
	// +optional
	// +listType=map
	// +listMapKey=owner
	// +listMapKey=namespace
	// +kubebuilder:validation:MaxItems=100
	HeldInVain []BudgetHeldInVain `json:"heldInVain,omitempty"`
	// conditions of the Budget.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// EnvelopeStatus is the usage of one envelope, in GPUs held now and GPU-hours spent in the window. Every GPU that is held
// counts once: as owned, family, lent, spare, overdraft or opportunistic. All but the last use concurrency.
type EnvelopeStatus struct {
	// name of the envelope.
	Name string `json:"name"`
	// ownedGPUs are held by the owner's own Runs.
	OwnedGPUs int32 `json:"ownedGPUs"`
	// familyGPUs are lent to the owner's family.
	// +optional
	FamilyGPUs int32 `json:"familyGPUs,omitempty"`
	// lentGPUs are lent to borrowers outside the family.
	// +optional
	LentGPUs int32 `json:"lentGPUs,omitempty"`
	// overdraftGPUs are held beyond what the envelope allows, by any Run (rule R8).
	// +optional
	OverdraftGPUs int32 `json:"overdraftGPUs,omitempty"`
	// spareGPUs are held by spares.
	// +optional
	SpareGPUs int32 `json:"spareGPUs,omitempty"`
	// opportunisticGPUs are held by opportunistic Runs; they do not count against concurrency.
	// +optional
	OpportunisticGPUs int32 `json:"opportunisticGPUs,omitempty"`
	// headroomGPUs may still be taken by the owner and its family.
	HeadroomGPUs int32 `json:"headroomGPUs"`
	// lendableGPUs is the part of headroomGPUs that may be lent to borrowers outside the family.
	// +optional
	LendableGPUs int32 `json:"lendableGPUs,omitempty"`
	// lendingGPUs are all that borrowers outside the family hold, overdraft and spares included: what
	// lending.maxConcurrency bounds.
	// +optional
	LendingGPUs int32 `json:"lendingGPUs,omitempty"`
	// gpuHours are spent in the window.
	// +optional
	GPUHours *GPUHours `json:"gpuHours,omitempty"`
}

// GPUHours are GPU-hours as decimals, exact to the second of one GPU and cut off after the fifth place (rule R7).
type GPUHours struct {
	// spent against maxGPUHours: owned, family, lent and spare, and opportunistic at its rate.
	Spent string `json:"spent"`
	// owned by the owner's own Runs, not counting spares.
	// +optional
	Owned string `json:"owned,omitempty"`
	// family is what was lent to the owner's family, not counting spares.
	// +optional
	Family string `json:"family,omitempty"`
	// lent to borrowers outside the family, not counting spares.
	// +optional
	Lent string `json:"lent,omitempty"`
	// spare is what spares were charged, at their rate.
	// +optional
	Spare string `json:"spare,omitempty"`
	// opportunistic is what opportunistic Runs held, whatever they were charged.
	// +optional
	Opportunistic string `json:"opportunistic,omitempty"`
	// lending is the part of spent that is due to borrowers outside the family: what lending.maxGPUHours bounds.
	// +optional
	Lending string `json:"lending,omitempty"`
	// promised to what runs: what is left of its maxDuration, or its next hour.
	// +optional
	Promised string `json:"promised,omitempty"`
	// lendingPromised is the part of promised that is due to borrowers outside the family.
	// +optional
	LendingPromised string `json:"lendingPromised,omitempty"`
	// left of maxGPUHours, without deducting what is promised. Absent when there is no cap.
	// +optional
	Left string `json:"left,omitempty"`
	// hourly is what is spent in an hour at the present rate.
	// +optional
	Hourly string `json:"hourly,omitempty"`
	// lost is the work that had not been saved when Leases closed in the window, by cause (rule R45). What the Run's other GPUs
	// lost by the end of a rank counts for the envelope that paid for that rank. Set for envelopes only.
	// +optional
	// +listType=map
	// +listMapKey=cause
	Lost []LostGPUHours `json:"lost,omitempty"`
}

// LostGPUHours is work that was lost by somebody's doing.
type LostGPUHours struct {
	// cause of the loss: the Node, the Program, a User or the Scheduler.
	Cause EndCause `json:"cause"`
	// gpuHours that were lost.
	GPUHours string `json:"gpuHours"`
}

// AggregateCapStatus is the usage of the envelopes under an aggregate cap together.
type AggregateCapStatus struct {
	// name of the cap.
	Name string `json:"name"`
	// usedGPUs are held against the cap.
	UsedGPUs int32 `json:"usedGPUs"`
	// headroomGPUs may still be taken; absent when the cap has no maxConcurrency.
	// +optional
	HeadroomGPUs *int32 `json:"headroomGPUs,omitempty"`
	// gpuHours are spent under the cap.
	// +optional
	GPUHours *GPUHours `json:"gpuHours,omitempty"`
}
