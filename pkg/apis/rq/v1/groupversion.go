// Package v1 holds the API of jobtree: Budget, Run, Lease and Reservation, group rq.davidlangworthy.io, version v1.
//
// +kubebuilder:object:generate=true
// +groupName=rq.davidlangworthy.io
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every kind in this package.
const GroupName = "rq.davidlangworthy.io"

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1"}

// SchemeBuilder registers the kinds of this package.
var SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme adds the kinds of this package to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Budget{}, &BudgetList{},
		&Run{}, &RunList{},
		&Lease{}, &LeaseList{},
		&Reservation{}, &ReservationList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// SchedulerName is the name that pods put in spec.schedulerName to be placed by jobtree.
const SchedulerName = "jobtree"

// Labels that every pod of a Run carries. Leases carry the same ones.
const (
	// LabelRun is the name of the Run, in the pod's own namespace.
	LabelRun = GroupName + "/run"
	// LabelGroupIndex is the index of the pod's group, from 0.
	LabelGroupIndex = GroupName + "/group-index"
	// LabelRole is the pod's role: Active, Spare or Borrowed.
	LabelRole = GroupName + "/role"
	// LabelCohort is the cohort in which the pod was started: 0 at the start, one more at each growth.
	LabelCohort = GroupName + "/cohort"
	// LabelRunUID holds the UID of the Run that a pod, or a Reservation, was made for.
	LabelRunUID = GroupName + "/run-uid"
	// LabelPodUID holds the UID of the pod that a Lease is held by.
	LabelPodUID = GroupName + "/pod-uid"
	// LabelIndex is the pod's index in its Run, from 0: its rank.
	LabelIndex = GroupName + "/index"
	// LabelEpoch counts, from 0, the pods that have had an active pod's rank before it, and is in its environment as
	// JOBTREE_EPOCH. Only active pods carry it.
	LabelEpoch = GroupName + "/epoch"
	// LabelSource is Pods on a pod that no Run made and that has a rank in one all the same (rule R41): it keeps its name, and
	// its controller. Pods that a Run made do not carry it.
	LabelSource = GroupName + "/source"
)

// A Run by which somebody asks what would happen if it were submitted begins its name with WhatIfPrefix and carries the
// label LabelWhatIf.
const (
	WhatIfPrefix = "what-if-"
	LabelWhatIf  = GroupName + "/what-if"
)

// Annotations that record what has been decided.
const (
	// AnnotationLost is on a Node that was found to be lost: when, why, and a sentence (rule R26). It holds until a person
	// removes it or uncordons the node, or the scheduler does because the checker's sign is gone by which the node was lost.
	AnnotationLost = GroupName + "/lost"
	// AnnotationCordoned is on a Node that is recorded as lost and that the scheduler has cordoned itself then: "true". Without
	// it the node was cordoned before, and somebody else is to uncordon it.
	AnnotationCordoned = GroupName + "/cordoned"
	// AnnotationHeldBack is on a Node that shows a sign of loss and is not taken for lost, since too many nodes show one at once
	// (rule R25): since when, which sign, and a sentence.
	AnnotationHeldBack = GroupName + "/held-back"
	// AnnotationSuspect is on a Node that speaks against itself: JSON with the marks against it, and when it was cleared
	// (rule R34).
	AnnotationSuspect = GroupName + "/suspect"
	// AnnotationReplaces is on a pod that takes the rank of one that was lost: JSON that says whose place it takes.
	AnnotationReplaces = GroupName + "/replaces"
	// AnnotationEndsBy is on a rank of a Run that has failed, which its kubelet ends where it is, so that its log stays: by
	// when its containers are to have ended (RFC 3339).
	AnnotationEndsBy = GroupName + "/ends-by"
	// AnnotationWorldSize is on a bound rank: how many ranks its Run had when the rank was bound. Its containers read it as
	// WORLD_SIZE.
	AnnotationWorldSize = GroupName + "/world-size"
	// AnnotationWrittenBy is on a GPU Lease that a scheduler with an election has opened: the namespace and name of the
	// election's Lease, and the identity of the process there, with slashes between. An admission policy compares it with who
	// leads.
	AnnotationWrittenBy = GroupName + "/written-by"
	// AnnotationDomain is on a GPU Lease: the fast-fabric domain of its node when the Lease was opened, by the values of its
	// topology labels with slashes between. The group stays there if the labels are taken off the node.
	AnnotationDomain = GroupName + "/domain"
	// AnnotationDerived is on a Run with source Pods: a hash of the spec that its group was read as. Until the Run starts it is
	// made anew when the group is read otherwise (rule R41).
	AnnotationDerived = GroupName + "/derived"
	// AnnotationMadeFor is on a Run with source Pods: what its group was made for, upward, such as
	// TrainJob.trainer.kubeflow.org/llm, separated by commas. Commands find the Run by it.
	AnnotationMadeFor = GroupName + "/made-for"
	// AnnotationExclusive is on a Run with source Pods whose groups are to have domains of these labels for themselves, separated
	// by commas, where groups of GPUs stay within those of another. A refusal says so.
	AnnotationExclusive = GroupName + "/exclusive"
)

// Annotations that administrators write on Nodes (rule R35): when planned maintenance of the node starts and when it ends,
// both in RFC 3339. Without an end nobody knows when it does. "kubectl runs maintenance" writes them.
const (
	AnnotationMaintenanceStart = GroupName + "/maintenance-start"
	AnnotationMaintenanceEnd   = GroupName + "/maintenance-end"
)
