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
// +kubebuilder:printcolumn:name="Owned",type=integer,JSONPath=`.status.funding.ownedGPUs`,priority=1
// +kubebuilder:printcolumn:name="Borrowed",type=integer,JSONPath=`.status.funding.borrowedGPUs`,priority=1
// +kubebuilder:printcolumn:name="Earliest start",type=string,JSONPath=`.status.earliestStart`,priority=1
// +kubebuilder:printcolumn:name="Ahead",type=integer,JSONPath=`.status.queue.ahead`,priority=1
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.ready`,priority=1
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.status.priority`,priority=1
// +kubebuilder:printcolumn:name="At risk",type=integer,JSONPath=`.status.atRiskTotal`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule=`size(self.metadata.name) <= 52 && !self.metadata.name.contains('.')`,message=`metadata.name of a Run may have at most 52 characters and no dots, because its Service and its pods' host names are made from it`
// +kubebuilder:validation:XValidation:rule=`oldSelf.?status.?phase.orValue('Pending') == 'Pending' || (self.spec.owner == oldSelf.spec.owner && has(self.spec.funding) == has(oldSelf.spec.funding) && (!has(self.spec.funding) || self.spec.funding == oldSelf.spec.funding))`,message=`owner and funding may change only while the Run is Pending: delete the Run and create a new one`,fieldPath=".spec"
// +kubebuilder:validation:XValidation:rule=`oldSelf.?status.?phase.orValue('Pending') == 'Pending' || (has(oldSelf.spec.runtime) ? has(self.spec.runtime) && has(self.spec.runtime.restarts) == has(oldSelf.spec.runtime.restarts) && (!has(self.spec.runtime.restarts) || self.spec.runtime.restarts == oldSelf.spec.runtime.restarts) && has(self.spec.runtime.startupDeadline) == has(oldSelf.spec.runtime.startupDeadline) && (!has(self.spec.runtime.startupDeadline) || self.spec.runtime.startupDeadline == oldSelf.spec.runtime.startupDeadline) && (!has(oldSelf.spec.runtime.checkpoint) || has(self.spec.runtime.checkpoint) && self.spec.runtime.checkpoint == oldSelf.spec.runtime.checkpoint) && (!has(oldSelf.spec.runtime.maxDuration) || has(self.spec.runtime.maxDuration) && duration(self.spec.runtime.maxDuration) <= duration(oldSelf.spec.runtime.maxDuration)) : !has(self.spec.runtime) || !has(self.spec.runtime.restarts) && !has(self.spec.runtime.startupDeadline))`,message=`once the Run has started, runtime.maxDuration may only be set or shortened, runtime.checkpoint only be set, and runtime.onTimeout be changed: for anything else delete the Run and create a new one`,fieldPath=".spec.runtime"
type Run struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the Run asks for.
	Spec RunSpec `json:"spec"`
	// status is what the Run has, written by the scheduler.
	// +optional
	// +kubebuilder:default={phase: Pending, message: "waiting to be placed"}
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

// RunSpec is the desired state of a Run. Once created, a Run keeps its shape: only malleable.desiredTotalGPUs,
// suspend, priorityClassName and ttlSecondsAfterFinished change at any time, and owner, funding and runtime while the Run
// is Pending. Once it has started, runtime.maxDuration may be set or shortened, runtime.checkpoint be set, and
// runtime.onTimeout be changed (rule R22).
//
// +kubebuilder:validation:XValidation:rule=`!(has(self.locality) && has(self.locality.groupGPUs)) || self.locality.groupGPUs < 1 || self.resources.totalGPUs % self.locality.groupGPUs == 0`,message=`resources.totalGPUs must be a multiple of locality.groupGPUs, so that groups are whole`,fieldPath=".locality.groupGPUs"
// +kubebuilder:validation:XValidation:rule=`!(has(self.locality) && has(self.locality.groupGPUs) && has(self.malleable)) || self.locality.groupGPUs < 1 || self.malleable.minTotalGPUs % self.locality.groupGPUs == 0`,message=`malleable.minTotalGPUs must be a multiple of locality.groupGPUs, so that groups are whole`,fieldPath=".malleable.minTotalGPUs"
// +kubebuilder:validation:XValidation:rule=`!(has(self.locality) && has(self.locality.groupGPUs) && has(self.malleable)) || self.locality.groupGPUs < 1 || self.malleable.stepGPUs % self.locality.groupGPUs == 0`,message=`malleable.stepGPUs must be a multiple of locality.groupGPUs, so that groups are whole`,fieldPath=".malleable.stepGPUs"
// +kubebuilder:validation:XValidation:rule=`!has(self.resources.gpusPerPod) || self.resources.gpusPerPod < 1 || self.resources.totalGPUs % self.resources.gpusPerPod == 0`,message=`resources.totalGPUs must be a multiple of resources.gpusPerPod, so that pods are whole`,fieldPath=".resources.gpusPerPod"
// +kubebuilder:validation:XValidation:rule=`!(has(self.resources.gpusPerPod) && has(self.locality) && has(self.locality.groupGPUs)) || self.resources.gpusPerPod < 1 || self.locality.groupGPUs % self.resources.gpusPerPod == 0`,message=`locality.groupGPUs must be a multiple of resources.gpusPerPod, so that pods are whole`,fieldPath=".locality.groupGPUs"
// +kubebuilder:validation:XValidation:rule=`!(has(self.resources.gpusPerPod) && has(self.malleable)) || self.resources.gpusPerPod < 1 || self.malleable.minTotalGPUs % self.resources.gpusPerPod == 0`,message=`malleable.minTotalGPUs must be a multiple of resources.gpusPerPod, so that pods are whole`,fieldPath=".malleable.minTotalGPUs"
// +kubebuilder:validation:XValidation:rule=`!(has(self.resources.gpusPerPod) && has(self.malleable)) || self.resources.gpusPerPod < 1 || self.malleable.stepGPUs % self.resources.gpusPerPod == 0`,message=`malleable.stepGPUs must be a multiple of resources.gpusPerPod, so that pods are whole`,fieldPath=".malleable.stepGPUs"
// +kubebuilder:validation:XValidation:rule=`!has(self.sparesPerGroup) || self.sparesPerGroup <= (has(self.locality) && has(self.locality.groupGPUs) ? self.locality.groupGPUs : self.resources.totalGPUs)`,message=`sparesPerGroup may not exceed the GPUs of a group: locality.groupGPUs, or resources.totalGPUs when there are no groups`,fieldPath=".sparesPerGroup"
// +kubebuilder:validation:XValidation:rule=`!has(self.spares) || self.spares <= (has(self.locality) && has(self.locality.groupGPUs) ? self.locality.groupGPUs : self.resources.totalGPUs)`,message=`spares may not exceed the GPUs of a group: locality.groupGPUs, or resources.totalGPUs when there are no groups`,fieldPath=".spares"
// +kubebuilder:validation:XValidation:rule=`!has(self.spares) || !has(self.sparesPerGroup) || self.spares == self.sparesPerGroup`,message=`spares and sparesPerGroup are two names of one field and differ: set one of them`,fieldPath=".spares"
// +kubebuilder:validation:XValidation:rule=`!has(self.malleable) || self.malleable.stepGPUs < 1 || (self.resources.totalGPUs >= self.malleable.minTotalGPUs && self.resources.totalGPUs <= self.malleable.maxTotalGPUs && (self.resources.totalGPUs - self.malleable.minTotalGPUs) % self.malleable.stepGPUs == 0)`,message=`resources.totalGPUs must be malleable.minTotalGPUs plus whole steps, at most malleable.maxTotalGPUs`,fieldPath=".resources.totalGPUs"
// +kubebuilder:validation:XValidation:rule=`!has(self.opportunistic) || !self.opportunistic || (self.?spares.orValue(0) == 0 && self.?sparesPerGroup.orValue(0) == 0)`,message=`an opportunistic Run may not have spares, because it gives its GPUs back on demand: remove opportunistic or the spares`,fieldPath=".opportunistic"
// +kubebuilder:validation:XValidation:rule=`!has(self.opportunistic) || !self.opportunistic || self.?locality.?allowCrossGroupSpread.orValue(true)`,message=`the shards of an opportunistic Run are wherever GPUs are idle: remove locality.allowCrossGroupSpread or opportunistic`,fieldPath=".locality.allowCrossGroupSpread"
// +kubebuilder:validation:XValidation:rule=`!has(self.opportunistic) || !self.opportunistic || self.?runtime.?onTimeout.orValue('Fail') != 'Requeue'`,message=`an opportunistic Run may not set runtime.onTimeout to Requeue, because its shards start again by themselves whenever GPUs are idle: remove runtime.onTimeout and runtime.maxDuration, or opportunistic`,fieldPath=".runtime.onTimeout"
// +kubebuilder:validation:XValidation:rule=`!has(self.funding) || !has(self.funding.sponsors) || !(self.owner in self.funding.sponsors)`,message=`the Run's own owner may not be a sponsor: its envelopes pay first anyway`,fieldPath=".funding.sponsors"
// +kubebuilder:validation:XValidation:rule=`self.?locality.?groupGPUs == oldSelf.?locality.?groupGPUs && self.?locality.?allowCrossGroupSpread == oldSelf.?locality.?allowCrossGroupSpread`,message=`locality is fixed once a Run is created: delete the Run and create a new one`,fieldPath=".locality"
// +kubebuilder:validation:XValidation:rule=`self.?sparesPerGroup == oldSelf.?sparesPerGroup`,message=`sparesPerGroup is fixed once a Run is created: delete the Run and create a new one`,fieldPath=".sparesPerGroup"
// +kubebuilder:validation:XValidation:rule=`self.?spares == oldSelf.?spares`,message=`spares is fixed once a Run is created: delete the Run and create a new one`,fieldPath=".spares"
// +kubebuilder:validation:XValidation:rule=`self.?opportunistic.orValue(false) == oldSelf.?opportunistic.orValue(false)`,message=`opportunistic is fixed once a Run is created: delete the Run and create a new one`,fieldPath=".opportunistic"
// +kubebuilder:validation:XValidation:rule=`self.resources == oldSelf.resources || self.?source.orValue('Template') == 'Pods'`,message=`resources is fixed once a Run is created: delete the Run and create a new one; only malleable.desiredTotalGPUs changes a width`,fieldPath=".resources"
// +kubebuilder:validation:XValidation:rule=`self.?source.orValue('Template') == 'Pods' || has(self.malleable) == has(oldSelf.malleable) && (!has(self.malleable) || (self.malleable.minTotalGPUs == oldSelf.malleable.minTotalGPUs && self.malleable.maxTotalGPUs == oldSelf.malleable.maxTotalGPUs && self.malleable.stepGPUs == oldSelf.malleable.stepGPUs))`,message=`the range of widths is fixed once a Run is created: change malleable.desiredTotalGPUs, or delete the Run and create a new one`,fieldPath=".malleable"
// +kubebuilder:validation:XValidation:rule=`(self.?source.orValue('Template') == 'Pods') == (oldSelf.?source.orValue('Template') == 'Pods')`,message=`source is fixed once a Run is created: the scheduler writes it for pods that no Run made`,fieldPath=".source"
// +kubebuilder:validation:XValidation:rule=`(self.?source.orValue('Template') == 'Pods') == has(self.pods)`,message=`pods says which group of pods a Run with source Pods is for, and no other Run has it`,fieldPath=".pods"
// +kubebuilder:validation:XValidation:rule=`!(has(self.pods) && (has(self.template) || self.?opportunistic.orValue(false)))`,message=`a Run with source Pods has no template and is not opportunistic: its pods are made by others`,fieldPath=".pods"
type RunSpec struct {
	// owner who spends: a colon-separated path such as org:ai:rai:sys.
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message=`owner must be a path of lower-case names joined by colons, such as org:ai:rai:sys`
	Owner Owner `json:"owner"`
	// resources is the number and kind of GPUs.
	Resources RunResources `json:"resources"`
	// locality says which GPUs must be close to each other.
	// +optional
	Locality *RunLocality `json:"locality,omitempty"`
	// sparesPerGroup is the number of spare GPUs in each group's domain, at most the size of a group; without groups, for the
	// whole Run. It is rounded up to whole pods, which are paid for: 1 is one pod (rule R14). Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	SparesPerGroup *int32 `json:"sparesPerGroup,omitempty"`
	// spares is another name of sparesPerGroup.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Spares *int32 `json:"spares,omitempty"`
	// malleable allows the Run to change its width while it runs. Default: the width is fixed.
	// +optional
	Malleable *RunMalleable `json:"malleable,omitempty"`
	// funding says from which sponsors, owners outside its family, the Run may borrow. Default: from none; its family pays as it can.
	// +optional
	Funding *RunFunding `json:"funding,omitempty"`
	// runtime says how long the Run takes and whether it can start again.
	// +optional
	Runtime *RunRuntime `json:"runtime,omitempty"`
	// opportunistic Runs use idle GPUs and give them back on demand. Default: false.
	// +optional
	Opportunistic bool `json:"opportunistic,omitempty"`
	// suspend holds the Run back while it is true, as in a Job: it has no pods, no date and no reserved GPUs. A Run that has
	// started releases all its GPUs, with the grace period of its pods, and becomes Pending; it is planned again, by its age,
	// once suspend is false. It may change at any time (rule R39). Default: false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// priorityClassName is a PriorityClass (scheduling.k8s.io/v1). Its value orders the Runs of one owner, never those of
	// different owners (rule R44). It may change at any time and is not written on pods. Default: priority 0, even if the
	// cluster has a global default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message=`priorityClassName must be the name of a PriorityClass: lower-case letters, digits, dashes and dots; see kubectl get priorityclasses`
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// ttlSecondsAfterFinished is how many seconds after its end the Run is deleted, as in a Job; 0 means at once. It may change
	// at any time, even after the end (rule R39). Default: the scheduler's finishedRunTTL, 7 days unless configured.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self >= 0`,message=`ttlSecondsAfterFinished must be 0 or more seconds: 0 deletes the Run as soon as it has ended; leave it out for the scheduler's finishedRunTTL`
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
	// template of the pods, as in a Job; see `kubectl explain pod.spec`. Leave out what jobtree sets: schedulerName, nodeName
	// and the labels under rq.davidlangworthy.io/. restartPolicy is Never (the default) or OnFailure. GPUs are requested in the
	// limits of containers. Default: a pause container, so that the Run holds its GPUs and does nothing.
	// +optional
	Template *corev1.PodTemplateSpec `json:"template,omitempty"`
	// submitter is the user who created the Run, by the user name that the API server knows; `kubectl runs submit` writes it. It
	// cannot name anybody else, and is fixed once the Run is created. Default: not known.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Submitter string `json:"submitter,omitempty"`
	// source says who creates the pods: Template means the scheduler, from template; Pods means somebody else, such as a Job's
	// controller. Only the scheduler creates Runs with source Pods, one for each group (rule R41). Default: Template.
	// +optional
	// +kubebuilder:validation:Enum=Template;Pods
	// +kubebuilder:validation:MaxLength=8
	Source RunSource `json:"source,omitempty"`
	// pods is the group of pods that a Run with source Pods represents.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.kind == oldSelf.kind && self.name == oldSelf.name`,message=`pods.kind and pods.name are fixed once a Run is created`
	Pods *RunPods `json:"pods,omitempty"`
}

// RunResources is the number and kind of GPUs that a Run asks for.
type RunResources struct {
	// gpuType is the type of GPU, such as H100-80GB: the value of the node label that the scheduler's configuration names (rule
	// R11). Budgets call it flavor.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')`,message=`resources.gpuType must be a valid label value, such as H100-80GB`
	GPUType string `json:"gpuType"`
	// totalGPUs is the number of GPUs that the Run starts with, not counting spares.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	TotalGPUs int32 `json:"totalGPUs"`
	// gpusPerPod is the number of GPUs of one pod. Default: the request in the template; else the largest number that
	// divides every width and with which the Run fits the empty fleet and is paid for there: status.gpusPerPod tells
	// (rule R14).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	GPUsPerPod *int32 `json:"gpusPerPod,omitempty"`
}

// RunLocality says which GPUs must be close to each other.
type RunLocality struct {
	// groupGPUs is the size of a group: GPUs that must share one fast-fabric domain (rule R12). It divides every width.
	// Default: no groups; the pods still touch as few domains as possible.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	GroupGPUs *int32 `json:"groupGPUs,omitempty"`
	// allowCrossGroupSpread lets groups lie in different fast-fabric domains. When false, all groups share one. Default: true.
	// +optional
	AllowCrossGroupSpread *bool `json:"allowCrossGroupSpread,omitempty"`
}

// RunMalleable is the range of widths of a Run that can change its width. Every width is minTotalGPUs plus a whole
// number of steps.
//
// +kubebuilder:validation:XValidation:rule=`self.minTotalGPUs <= self.maxTotalGPUs`,message=`malleable.minTotalGPUs must be at most malleable.maxTotalGPUs`,fieldPath=".minTotalGPUs"
// +kubebuilder:validation:XValidation:rule=`self.stepGPUs < 1 || (self.maxTotalGPUs - self.minTotalGPUs) % self.stepGPUs == 0`,message=`malleable.maxTotalGPUs must be malleable.minTotalGPUs plus whole steps of malleable.stepGPUs`,fieldPath=".maxTotalGPUs"
// +kubebuilder:validation:XValidation:rule=`!has(self.desiredTotalGPUs) || self.stepGPUs < 1 || (self.desiredTotalGPUs >= self.minTotalGPUs && self.desiredTotalGPUs <= self.maxTotalGPUs && (self.desiredTotalGPUs - self.minTotalGPUs) % self.stepGPUs == 0)`,message=`malleable.desiredTotalGPUs must be malleable.minTotalGPUs plus whole steps, at most malleable.maxTotalGPUs`,fieldPath=".desiredTotalGPUs"
type RunMalleable struct {
	// minTotalGPUs is the narrowest width, 1 to maxTotalGPUs.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MinTotalGPUs int32 `json:"minTotalGPUs"`
	// maxTotalGPUs is the widest width: minTotalGPUs plus whole steps.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxTotalGPUs int32 `json:"maxTotalGPUs"`
	// stepGPUs is the least change of width, in GPUs.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	StepGPUs int32 `json:"stepGPUs"`
	// desiredTotalGPUs is the width to grow or shrink to: minTotalGPUs plus whole steps. It may change at any time. Default: maxTotalGPUs.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	DesiredTotalGPUs *int32 `json:"desiredTotalGPUs,omitempty"`
}

// Desired returns the width that a Run grows or shrinks to, in GPUs: desiredTotalGPUs, else the widest; the total of one that has no range.
func (s *RunSpec) Desired() int32 {
	switch m := s.Malleable; {
	case m == nil:
		return s.Resources.TotalGPUs
	case m.DesiredTotalGPUs == nil:
		return m.MaxTotalGPUs
	default:
		return *m.DesiredTotalGPUs
	}
}

// RunFunding says from which sponsors, owners outside its family, a Run may borrow.
//
// +kubebuilder:validation:XValidation:rule="self.allowBorrow || (!has(self.sponsors) || size(self.sponsors) == 0)",message="funding.sponsors need funding.allowBorrow: true",fieldPath=".sponsors"
// +kubebuilder:validation:XValidation:rule="self.allowBorrow || !has(self.maxBorrowGPUs)",message="funding.maxBorrowGPUs needs funding.allowBorrow: true",fieldPath=".maxBorrowGPUs"
type RunFunding struct {
	// allowBorrow lets the Run borrow from sponsors.
	AllowBorrow bool `json:"allowBorrow"`
	// maxBorrowGPUs is the most GPUs held from sponsors at a time (rule R5). Default: unbounded.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxBorrowGPUs *int32 `json:"maxBorrowGPUs,omitempty"`
	// sponsors are the owners to borrow from, in order, without duplicates.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule=`self.all(s, self.exists_one(o, o == s))`,message=`funding.sponsors may name an owner only once`
	// +kubebuilder:validation:XValidation:rule=`self.all(s, s.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'))`,message=`funding.sponsors must be owners: paths of lower-case names joined by colons, such as org:ai:mm`
	Sponsors []Owner `json:"sponsors,omitempty"`
}

// RunRuntime says how long a Run takes and whether it can be requeued.
//
// +kubebuilder:validation:XValidation:rule=`self.?onTimeout.orValue('Fail') != 'Requeue' || has(self.maxDuration) && has(self.checkpoint)`,message=`runtime.onTimeout: Requeue needs runtime.maxDuration, after which the Run waits again, and runtime.checkpoint, which says that it can start again from what it has saved: set both, or remove runtime.onTimeout`,fieldPath=".onTimeout"
// +kubebuilder:validation:XValidation:rule=`self.?onTimeout.orValue('Fail') != 'Requeue' || !has(self.maxDuration) || duration(self.maxDuration) >= duration('1m')`,message=`runtime.maxDuration must be at least 1m with runtime.onTimeout: Requeue, because each attempt writes a Lease for every pod: set a longer one, or remove runtime.onTimeout`,fieldPath=".maxDuration"
type RunRuntime struct {
	// checkpoint is the interval between checkpoints, positive, such as 10m or 1h30m. A Run that declares one can start again
	// after a cut or a loss (rule R22). It may be declared while the Run runs. Default: none.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,6}([.][0-9]{1,9})?s)?([0-9]{1,6}ms)?$') && self != '' && duration(self) > duration('0s')`,message=`runtime.checkpoint must be a positive duration in hours, minutes and seconds, such as 10m, 1h30m or, for 3 days, 72h`
	Checkpoint *metav1.Duration `json:"checkpoint,omitempty"`
	// maxDuration is the longest that the Run may take, positive, such as 12h, or 72h for 3 days (kubectl runs also accepts 3d).
	// After that it is ended, and onTimeout says what happens then. It may be set or shortened while the Run runs (rule R22).
	// Default: unbounded.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,6}([.][0-9]{1,9})?s)?([0-9]{1,6}ms)?$') && self != '' && duration(self) > duration('0s')`,message=`runtime.maxDuration must be a positive duration in hours, minutes and seconds, such as 10m, 1h30m or, for 3 days, 72h`
	MaxDuration *metav1.Duration `json:"maxDuration,omitempty"`
	// onTimeout says what happens when maxDuration is over. Fail: the Run is Failed with the reason TimedOut. Requeue: the Run
	// waits again, at the end of the queue, and starts from its checkpoint for up to maxDuration again; it needs
	// checkpoint and a maxDuration of at least 1m. It may be changed while the Run runs (rule R22). Default: Fail.
	// +optional
	OnTimeout TimeoutAction `json:"onTimeout,omitempty"`
	// startupDeadline is how long a rank may take to become ready after it was bound, at least 1m, such as 15m. A rank that is
	// not ready by then counts as dead (rule R39). Default: none.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,6}([.][0-9]{1,9})?s)?([0-9]{1,6}ms)?$') && self != '' && duration(self) >= duration('1m')`,message=`runtime.startupDeadline must be a duration of at least 1m in hours, minutes and seconds, such as 15m or 1h30m`
	StartupDeadline *metav1.Duration `json:"startupDeadline,omitempty"`
	// restarts says what is done when ranks die because of their program (rule R34). Opportunistic Runs are not restarted.
	// Default: 3 restarts if a checkpoint is declared, else none.
	// +optional
	Restarts *RunRestarts `json:"restarts,omitempty"`
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

// RunStatus is the observed state of a Run.
type RunStatus struct {
	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase of the Run.
	// +optional
	Phase RunPhase `json:"phase,omitempty"`
	// message says in a sentence how the Run stands and what it waits for.
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
	// gpusPerPod is how many GPUs each pod has of a Run that runs, or waits with its first pod (rule R14).
	// +optional
	GPUsPerPod int32 `json:"gpusPerPod,omitempty"`
	// sparesPerGroup is how many GPUs are to stand by in each group of such a Run, in whole pods (rule R14).
	// +optional
	SparesPerGroup int32 `json:"sparesPerGroup,omitempty"`
	// ready is how many ranks of a running Run are ready, not counting spares. It may be some seconds old.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready,omitempty"`
	// funding says who pays for what the Run holds.
	// +optional
	Funding *RunFundingStatus `json:"funding,omitempty"`
	// pendingReservation is the name of the Reservation that the Run waits for.
	// +optional
	PendingReservation string `json:"pendingReservation,omitempty"`
	// earliestStart is when the Run is expected to start.
	// +optional
	EarliestStart *metav1.Time `json:"earliestStart,omitempty"`
	// forecast is when a suspended Run would start if it were resumed; absent for other Runs. It promises nothing and affects no
	// other Run (rule R39).
	// +optional
	Forecast *RunForecast `json:"forecast,omitempty"`
	// queue is the Run's place among the Runs that wait for its GPU type, while it has no date. It is updated when it has
	// changed considerably.
	// +optional
	Queue *RunQueue `json:"queue,omitempty"`
	// atRisk lists the Reservations whose activation may cut this Run: the first 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	AtRisk []RunRisk `json:"atRisk,omitempty"`
	// atRiskTotal is how many Reservations there are whose activation may cut this Run, listed or not.
	// +optional
	// +kubebuilder:validation:Minimum=0
	AtRiskTotal int32 `json:"atRiskTotal,omitempty"`
	// deaths are the failed ranks of the Run, how they ended and why: 16 at most. If there are more, the most telling stay: the
	// rank that died first in each incident that counts, and ranks that nodes have ended repeatedly.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Deaths []RunDeath `json:"deaths,omitempty"`
	// restarts counts the incidents in which ranks died because of their program; absent if there was none.
	// +optional
	Restarts *RunRestartsStatus `json:"restarts,omitempty"`
	// priority of the Run among the Runs of its owner: the value of its PriorityClass, or 0 if that does not exist. Absent if
	// the Run names none.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
	// placeSince is the time that decides the Run's place in the queue if that is not its creation: its maxDuration was over
	// then (rule R22), a Run of its owner with a higher priority has started from its former place (rule R44), or it has been
	// suspended (rule R39). RFC 3339.
	// +optional
	PlaceSince *metav1.Time `json:"placeSince,omitempty"`
	// suspendedSeconds is for how long the Run had been suspended when it was last resumed, in all, since it was created or its
	// maxDuration was last over: its place in the queue is so much later (rule R39).
	// +optional
	// +kubebuilder:validation:Minimum=0
	SuspendedSeconds int64 `json:"suspendedSeconds,omitempty"`
	// refusal says as data why a waiting Run did not start when it was last tried; absent if it has not been refused.
	// +optional
	Refusal *RunRefusal `json:"refusal,omitempty"`
	// attempt is how often the Run has gone back to waiting since it was submitted: 0 until it has run. Each of its Leases says
	// in which attempt it was opened.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Attempt int32 `json:"attempt,omitempty"`
	// timeouts tells how often the Run's maxDuration was over and it waited again; absent while that has not happened.
	// +optional
	Timeouts *RunTimeouts `json:"timeouts,omitempty"`
	// heldInVain tells for how many attempts places were held in vain for pods that somebody else was to create, and until
	// when none are held again; absent if there was none lately.
	// +optional
	HeldInVain *RunHeldInVain `json:"heldInVain,omitempty"`
	// forgone are the ranks of a running group for which nothing is kept any more, in order: their pods have gone, and
	// nobody has created others in time. A pod that is created for one later is paid for by whoever can pay for it then.
	// +optional
	// +listType=map
	// +listMapKey=index
	Forgone []RunForgone `json:"forgone,omitempty"`
}
