package v1

// Annotations that users write on pods (rules R40, R41 and R45). They are the only words under GroupName that are theirs: the
// admission policy for pods lists the same, and refuses all others. A Run's template carries none, since a Run says these
// things in its spec.
const (
	// AnnotationOwner is the owner that a pod's group spends as.
	AnnotationOwner = GroupName + "/owner"
	// AnnotationMaxDuration is the longest that the group runs.
	AnnotationMaxDuration = GroupName + "/max-duration"
	// AnnotationCheckpoint is how often the group saves its work.
	AnnotationCheckpoint = GroupName + "/checkpoint"
	// AnnotationSpares is how many GPUs stand by for each group of GPUs.
	AnnotationSpares = GroupName + "/spares"
	// AnnotationMinWidth is the least number of GPUs that the group can do with.
	AnnotationMinWidth = GroupName + "/min-width"
	// AnnotationGPUType is the type of GPU.
	AnnotationGPUType = GroupName + "/gpu-type"
	// AnnotationGroupGPUs is how many GPUs must share a fast fabric.
	AnnotationGroupGPUs = GroupName + "/group-gpus"
	// AnnotationGroup names the group that a pod belongs to, and AnnotationGroupSize is how many pods that has.
	AnnotationGroup     = GroupName + "/group"
	AnnotationGroupSize = GroupName + "/group-size"
	// AnnotationSavedAt is when the program saved its work last (RFC 3339).
	AnnotationSavedAt = GroupName + "/saved-at"
	// AnnotationTakeMe says with "true" that the program is done and may be ended at once.
	AnnotationTakeMe = GroupName + "/take-me"
)

// AnnotationsAtFirst are those that stand from a pod's creation on.
var AnnotationsAtFirst = []string{
	AnnotationOwner, AnnotationMaxDuration, AnnotationCheckpoint, AnnotationSpares, AnnotationMinWidth, AnnotationGPUType,
	AnnotationGroupGPUs, AnnotationGroup, AnnotationGroupSize,
}

// AnnotationsAnytime are those that may be written, changed and taken away at any time.
var AnnotationsAnytime = []string{AnnotationSavedAt, AnnotationTakeMe}
