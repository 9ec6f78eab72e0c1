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
	// apiGroup of what the group is known by, such as batch; empty for pods and for groups that are no objects.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`
	// kind and name of what the group is known by, such as Job and train; Pod for a pod that is in no group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// late says that some pods are made only once others of the group are bound: it starts as soon as those that exist have
	// places, and the places of the others are kept for them (rule R40). Default: false.
	// +optional
	Late bool `json:"late,omitempty"`
	// first is how many of the ranks of a group that is late have pods before any is bound. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	First int32 `json:"first,omitempty"`
}

// Theirs reports whether somebody else makes the pods of the Run.
func (s *RunSpec) Theirs() bool { return s.Source == SourcePods }

// TheirsComeLate reports whether somebody else makes the pods of the Run, some only once others are bound.
func (s *RunSpec) TheirsComeLate() bool { return s.Theirs() && s.Pods != nil && s.Pods.Late }
