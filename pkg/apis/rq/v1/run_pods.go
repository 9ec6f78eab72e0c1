package v1

// RunSource says who makes the pods of a Run.
type RunSource string

// Sources of the pods of a Run.
const (
	// SourceTemplate: the scheduler makes them, from the Run's template. It is the default.
	SourceTemplate RunSource = "Template"
	// SourcePods: somebody else makes them, and the Run follows them.
	SourcePods RunSource = "Pods"
)

// RunPods names a group of pods that no Run made (rule R40).
type RunPods struct {
	// apiGroup of the object that identifies the group, such as batch; empty for pods and for groups without an object.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`
	// kind of the object that identifies the group, such as Job; Pod for a pod without a group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// name of that object, such as train.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// late says that some pods of the group are created only after others are bound. The group starts as soon as the existing
	// pods have places, and places are kept for the others (rule R40). Default: false.
	// +optional
	Late bool `json:"late,omitempty"`
	// first is how many ranks of a late group have pods before any pod is bound. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	First int32 `json:"first,omitempty"`
	// ranks is how many pods with GPUs the group is to have by now, where it was made smaller and pods stay whose ranks are
	// higher than that: ranks without a pod beyond that number are not waited for. Default: as many as the Run has ranks.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Ranks *int32 `json:"ranks,omitempty"`
}

// Theirs reports whether somebody else makes the pods of the Run.
func (s *RunSpec) Theirs() bool { return s.Source == SourcePods }

// TheirsComeLate reports whether somebody else makes the pods of the Run, some only once others are bound.
func (s *RunSpec) TheirsComeLate() bool { return s.Theirs() && s.Pods != nil && s.Pods.Late }

// Ranks returns how many of some ranks are to have pods: of a group that others have made smaller those that it is to
// have by now may be fewer.
func (s *RunSpec) Ranks(of int) int {
	if s.Pods == nil || s.Pods.Ranks == nil {
		return of
	}
	return min(of, int(*s.Pods.Ranks))
}
